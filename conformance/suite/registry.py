"""Which test proves which clause."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import ModuleType

from conformkit.spec.clauses import STEMS
from conformkit.spec.clauses import clause as find
from conformkit.spec.profiles import PROFILES

__all__ = ["Test", "clause", "lesson", "tests"]

Test = Callable[..., None]


def clause(clause_id: str, *, lesson: str = "") -> Callable[[Test], Test]:
    """Mark a function of the suite as the test of a clause; its arguments are named in providers.py.

    Tests with the same `lesson` look at one trained model; a worker that judges one of them judges them all.
    """
    find(clause_id)

    def mark(test: Test) -> Test:
        test.__dict__.update(clause_id=clause_id, lesson=lesson)
        return test

    return mark


def lesson(test: Test | None) -> str:
    """Return the name of the lesson that a test looks at; nothing where it trains for itself alone, or not at all."""
    return str(test.__dict__.get("lesson", "")) if test is not None else ""


@cache
def tests(profile: str | None = None) -> Mapping[str, Test]:  # noqa: PT028 - no test itself
    """Return the suite's tests by clause id, in the order of the law; with a profile, what a run of it may need.

    Clauses of other profiles may need those of core; those of seq2seq, encoder, vit and paths do not.
    """
    found: dict[str, Test] = {}
    for stem in _stems(profile):
        for test in _marked(importlib.import_module(f"conformkit.conformance.suite.test_{stem}")):
            name = test.__dict__["clause_id"]
            if name in found:
                raise ValueError(f"{name} has two tests, {found[name].__name__} and {test.__name__}")
            found[name] = test
    return found


def _stems(profile: str | None) -> Iterable[str]:
    """Return the documents whose clauses a run may need: those of core go with every profile that is built on it."""
    if profile is None:
        return STEMS
    own = PROFILES[profile]
    return dict.fromkeys((*(PROFILES["core"].documents if own.on_core else ()), *own.documents))


def arguments(test: Test) -> tuple[str, ...]:
    """Return the names of what a test asks for."""
    return tuple(inspect.signature(test).parameters)


def _marked(module: ModuleType) -> list[Test]:
    found = vars(module).values()
    return [value for value in found if callable(value) and "clause_id" in getattr(value, "__dict__", ())]
