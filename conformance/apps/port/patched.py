"""The definition with other lines: what a mistake in the code makes of a formula.

A patch names a function or a method of the law, a text in it, and what the text becomes. Formulas call each other by
name from many modules, so the function itself gets other code while the patch holds, and its own again behind it.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType

__all__ = ["FormulaPatch", "patched"]

_LAW = "conformkit.spec"
_FUTURE = "from __future__ import annotations"


@dataclass(frozen=True, slots=True)
class FormulaPatch:
    """A text in a function of the law, `module:function` or `module:Class.method`, and what it becomes."""

    at: str
    find: str
    becomes: str

    @property
    def function(self) -> FunctionType:
        """The function that it changes. Raises ValueError if there is none of that name."""
        module, _, path = self.at.partition(":")
        found: object = importlib.import_module(f"{_LAW}.{module}")
        for name in path.split("."):
            found = getattr(found, name, None)
        if not isinstance(found, FunctionType):
            raise ValueError(f"{self.at} is no function of the law")  # noqa: TRY004 - the file is wrong, not a type
        return found


@contextmanager
def patched(patches: Iterable[FormulaPatch]) -> Iterator[None]:
    """Let functions of the law compute as patches say, as long as this holds. Raises ValueError."""
    by_place: dict[str, tuple[FormulaPatch, ...]] = {}
    for patch in patches:
        by_place[patch.at] = (*by_place.get(patch.at, ()), patch)
    changed = [(of[0].function, of[0].function.__code__, _code(of)) for of in by_place.values()]
    try:
        for function, _, code in changed:
            object.__setattr__(function, "__code__", code)
        yield
    finally:
        for function, own, _ in changed:
            object.__setattr__(function, "__code__", own)


@cache
def _code(patches: tuple[FormulaPatch, ...]) -> CodeType:
    """Return the code of a function with its patches. Raises ValueError if a text of them is not there once."""
    function = patches[0].function
    text = _source(function)
    for patch in patches:
        if text.count(patch.find) != 1:
            raise ValueError(f"{patch.at} has {text.count(patch.find)} times: {patch.find}")
        text = text.replace(patch.find, patch.becomes)
    module = compile(f"{_FUTURE}\n{text}", function.__code__.co_filename, "exec", dont_inherit=True)
    return next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == function.__name__)


@cache
def _source(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function))
