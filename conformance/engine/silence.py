"""What never answers within the time limit is not asked for ever: each such call costs the whole limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.driver.errors import WorkerLost

__all__ = ["PATIENCE", "NeverAnswers", "Silence", "asked_of"]

PATIENCE = 3
"""Calls without an answer after which what has never given one is not called again."""
_OWN = frozenset({"build", "vjp", "train"})
"""Operations that may hang where a plain call does not."""

Asked = tuple[str, str]


class NeverAnswers(WorkerLost):
    """It is not asked, since it has never answered: nothing is lost by that, neither time nor the worker."""

    def __init__(self) -> None:
        super().__init__("timeout", f"no answer to {PATIENCE} calls, each as long as the limit; it is not called again")


@dataclass(slots=True)
class Silence:
    """By path and by what is called of it, how many requests had no answer; shared by all workers of a run."""

    _unanswered: Counter[Asked] = field(default_factory=Counter)
    _answered: set[Asked] = field(default_factory=set)

    def check(self, asked: Asked | None) -> None:
        """Raise NeverAnswers where it never did, and was asked often enough."""
        if asked is not None and self._unanswered[asked] >= PATIENCE and asked not in self._answered:
            raise NeverAnswers

    def heard(self, asked: Asked | None) -> None:
        """Note that it answered, or raised: from now on, what takes long is slow, not endless."""
        if asked is not None:
            self._answered.add(asked)

    def lost(self, asked: Asked | None, lost: WorkerLost) -> None:
        """Note how a worker was lost while it was asked."""
        if asked is not None and lost.kind == "timeout":
            self._unanswered[asked] += 1


def asked_of(paths: Mapping[int, str], header: Mapping[str, Any]) -> Asked | None:
    """Return the path of the object that a request is about, and what of it is called; None where nothing is."""
    path = header.get("path") or paths.get(header.get("handle") or 0)
    if not path or header["op"] not in _OWN | {"call", "ask", "trace", "observe"}:
        return None
    return str(path), str(header["op"] if header["op"] in _OWN else header.get("method") or "call")
