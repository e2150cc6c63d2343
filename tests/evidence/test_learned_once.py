"""A model is trained once for all clauses that ask for the same lesson, however their sizes are drawn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.engine.providers import provide
from conformkit.conformance.evidence import copying, learning, seq2seq_generation
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.test_learning import COPY
from conformkit.conformance.suite.test_seq2seq_training import COPY as TASK

SEED = 3


class Known:
    """An implementation with one component, which it gives to each clause."""

    def __init__(self) -> None:
        self.component = Subject(SimpleNamespace(failure=None), link=SimpleNamespace())  # type: ignore[arg-type]

    def subject(self, _name: str) -> Subject:
        return self.component

    def asked(self, argument: str, clause_id: str) -> Any:
        """Return what the clause's test gets."""
        given = provide((argument,), self, Draw(SEED, clause_id))  # type: ignore[arg-type]
        return given[argument]


def _counting(count: list[tuple[Any, ...]]) -> Callable[..., object]:
    def find(*arguments: Any) -> object:
        count.append(arguments)
        return object()

    return find


@pytest.mark.parametrize(
    ("module", "work", "argument", "ask"),
    [
        (learning, "_taught", "model", lambda model, seed: learning.learned(model, COPY, seed)),
        (copying, "_taught", "transformer", lambda model, seed: copying.learned(model, TASK, seed)),
        (
            seq2seq_generation, "_begins_now", "transformer",
            lambda model, _seed: seq2seq_generation._begins(SimpleNamespace(subject=model)),  # type: ignore[arg-type]
        ),
    ],
    ids=["lesson", "task", "begin-id"],
)  # fmt: skip
def test_two_clauses_share_what_one_has_found_out(
    module: Any, work: str, argument: str, ask: Callable[[Subject, int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, work, _counting(done))
    known = Known()
    found = {ask(known.asked(argument, f"TRAIN-{number}"), SEED) for number in range(4)}
    assert (len(found), len(done)) == (1, 1)


def test_another_seed_another_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(learning, "_taught", _counting(done))
    model = Known().asked("model", "TRAIN-ONE")
    assert learning.learned(model, COPY, 1) is not learning.learned(model, COPY, 2)


def test_what_is_bound_anew_or_watched_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever watches a component wants to see its objects made; another binding gives other numbers."""
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(learning, "_taught", _counting(done))
    model = Known().asked("model", "TRAIN-ONE")
    others = [model, model.with_bound(model.bound), model.watched(lambda _: None), model.like(model.link)]
    assert len({learning.learned(one, COPY, SEED) for one in others}) == len(others) == len(done)


def test_a_lesson_does_not_depend_on_the_sizes_of_the_clause_that_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(learning, "_taught", _counting(done))
    model = Known().asked("model", "TRAIN-ONE")
    assert model.jitter != model.as_asked.jitter
    learning.learned(model, COPY, SEED)
    assert done[0][0].jitter == model.as_asked.jitter
