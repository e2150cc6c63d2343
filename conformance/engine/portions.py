"""What workers take in turn: a document, or the clauses about one lesson, so that nothing is trained twice."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformkit.conformance.engine.judge import Verdicts
from conformkit.conformance.suite.registry import Test, lesson
from conformkit.spec.clauses import Clause
from conformkit.spec.clauses import clause as find

__all__ = ["Portions"]

_TRAINED = frozenset({"training", "learning", "seq2seq_training"})
"""Documents whose clauses train a model: each takes as long as many others together."""
_EVERY_SIZE, _EVERY_COMPONENT = 20, 4
"""As long as so many others takes a clause about every size, and one about every component."""


@dataclass(frozen=True, slots=True, eq=False)
class _Portion:
    """Clauses that one worker judges."""

    clauses: Sequence[Clause]
    after: frozenset[str]
    """Clauses of other lessons that are judged before: whoever needs one of these earlier would train a model, too."""


class Portions:
    """Portions of clauses for several threads; to iterate over it takes one after the other until none is left.

    The longest come first: begun last, one of them would keep one worker busy when the others have nothing left. With
    `in_order`, each clause is a portion, in the order in which they are given.
    """

    def __init__(
        self, clauses: Sequence[Clause], tests: Mapping[str, Test], verdicts: Verdicts, *, in_order: bool = False
    ) -> None:
        self._verdicts = verdicts
        self._left = [_Portion([one], frozenset()) for one in clauses] if in_order else _portions(clauses, tests)
        self.count = len(self._left)
        """How many workers have something to do."""
        self._changed = threading.Condition()
        self._taken = 0
        self._stopped = False

    def __iter__(self) -> Generator[Clause, None, None]:
        """Yield clauses until there are none, or `stop` was called."""
        while (portion := self._take()) is not None:
            try:
                for clause in portion.clauses:
                    if self._stopped:
                        return
                    yield clause
            finally:
                self._give_back()

    def stop(self) -> None:
        """Let nobody take anything any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _take(self) -> _Portion | None:
        """Return the first portion whose turn it is; wait while others may make it so. None at the end."""
        with self._changed:
            while self._left and not self._stopped:
                ready = next((p for p in self._left if all(map(self._verdicts.known, p.after))), None)
                if ready is not None or not self._taken:
                    chosen = ready or self._left[0]
                    self._left.remove(chosen)
                    self._taken += 1
                    return chosen
                self._changed.wait()
            return None

    def _give_back(self) -> None:
        with self._changed:
            self._taken -= 1
            self._changed.notify_all()


def _portions(clauses: Sequence[Clause], tests: Mapping[str, Test]) -> list[_Portion]:
    """Return lessons in the order of their first clauses, then the other documents, the longest first."""
    found: dict[tuple[int, str], list[Clause]] = {}
    for number, (document, group) in enumerate(groupby(clauses, key=lambda clause: clause.document)):
        for clause in group:
            own = (lesson(tests.get(clause.id)) or clause.id) if document in _TRAINED else ""
            found.setdefault((number, own), []).append(clause)
    taught = {clause.id for (_, own), alike in found.items() if own for clause in alike}
    made = {key: _Portion(alike, _needed(alike) & taught) for key, alike in found.items()}
    return [made[key] for key in sorted(made, key=lambda key: (not key[1], 0 if key[1] else -_length(found[key])))]


def _length(clauses: Sequence[Clause]) -> int:
    """Return about how long they take: as long as so many usual clauses."""
    return sum(
        _EVERY_SIZE if clause.sizes else _EVERY_COMPONENT if clause.component == "all" else 1 for clause in clauses
    )


def _needed(clauses: Sequence[Clause]) -> frozenset[str]:
    """Return what these clauses need, directly or not, besides themselves."""
    own = {clause.id for clause in clauses}
    found, waiting = set[str](), list(own)
    while waiting:
        more = set(find(waiting.pop()).needs) - found
        found |= more
        waiting += more
    return frozenset(found - own)
