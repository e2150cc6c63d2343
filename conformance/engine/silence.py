"""What takes longer than a call may is not asked for ever: each such call costs the whole time limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.driver.errors import WorkerLost

__all__ = ["PATIENCE", "AskedCall", "GivenUp", "NeverAnswers", "Silence", "asked_of"]

PATIENCE = 3
"""Calls without an answer after which the same is not called again; one, once something else has had so many."""
_OWN = frozenset({"build", "vjp", "train"})
"""Operations that may hang where a plain call does not."""

AskedCall = tuple[str, str]


class NeverAnswers(WorkerLost):
    """It is not asked, since it has never answered: nothing is lost by that, neither time nor the worker."""

    def __init__(self, calls: int) -> None:
        super().__init__("timeout", f"no answer to {_calls(calls)} as long as the limit; it is not called again")


class GivenUp(WorkerLost):
    """It is not asked, though it might answer: often enough it did not, and a clause has told that already."""

    def __init__(self, calls: int) -> None:
        super().__init__(
            "timeout", f"it gave no answer to {_calls(calls)} as long as the limit, and is not called again"
        )


def _calls(number: int) -> str:
    return "a call" if number == 1 else f"{number} calls, each"


@dataclass(slots=True)
class Silence:
    """By path and by what is called of it, how many requests had no answer; shared by all workers of a run."""

    _unanswered: Counter[AskedCall] = field(default_factory=Counter)
    _answered: set[AskedCall] = field(default_factory=set)
    _told: set[AskedCall] = field(default_factory=set)

    def check(self, asked: AskedCall | None) -> None:
        """Raise NeverAnswers where it never did, GivenUp where a clause told of it, if it was asked often enough."""
        if asked is None or not (calls := self._unanswered[asked]):
            return
        if calls < PATIENCE and not any(map(self._is_hopeless, list(self._unanswered))):
            return
        if asked not in self._answered:
            raise NeverAnswers(calls)
        if asked in self._told:
            raise GivenUp(calls)

    def _is_hopeless(self, asked: AskedCall) -> bool:
        return self._unanswered[asked] >= PATIENCE and (asked in self._told or asked not in self._answered)

    def heard(self, asked: AskedCall | None) -> None:
        """Note that it answered, or raised: from now on, what takes long is slow, until a clause tells of it."""
        if asked is not None:
            self._answered.add(asked)

    def lost(self, asked: AskedCall | None, lost: WorkerLost) -> None:
        """Note how a worker was lost while it was asked."""
        if asked is not None and lost.kind == "timeout":
            self._unanswered[asked] += 1

    def told(self, asked: AskedCall | None) -> None:
        """Note that a clause is red because this gave no answer."""
        if asked is not None:
            self._told.add(asked)


def asked_of(paths: Mapping[int, str], header: Mapping[str, Any]) -> AskedCall | None:
    """Return the path of the object that a request is about, and what of it is called; None where nothing is."""
    path = header.get("path") or paths.get(header.get("handle") or 0)
    if not path or header["op"] not in _OWN | {"call", "ask", "trace", "observe"}:
        return None
    return str(path), str(header["op"] if header["op"] in _OWN else header.get("method") or "call")
