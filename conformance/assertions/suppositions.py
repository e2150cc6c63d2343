"""What a result would be with one slip that is usual in its place, worked out where it is wrong.

Whoever compares knows what usually goes wrong there: an average that is not corrected, a text of which only the newest
id is read. It says so in words, with what works out the result; nothing is worked out while results are right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.agreement import FINEST, agree, in_numbers
from conformkit.conformance.findings.relation import How, Relation
from conformkit.spec.arrays import Array

__all__ = ["RIGHT", "Slips", "supposed"]

Slips = Mapping[str, Callable[[], object]]
"""What works out the result with one slip, by words that follow `it is what comes out …`."""
RIGHT = ""
"""In place of words: what works out the right rows, if what is compared may be some of them."""
_ROUNDED = 30.0
"""So many times finer than the check's own tolerance a slip must give the numbers, or nearly as float32 has them."""
_IDS, _DISTINCT = 10, 3
"""So many wrong ids, and so many different ones, tell which slip gives them: of fewer, half were given by another one,
among 290 known mistakes in writing."""
_LONG = 3.0
"""After so many seconds nothing more is worked out: the code is called for some of it."""


def supposed(got: Array, want: Array, allowed: float, slips: Iterable[Slips]) -> Relation | None:
    """Return the first slip that gives all numbers; None where none does."""
    if (both := in_numbers(got, want)) is None:
        return None
    ours, theirs = both
    close = max(allowed / _ROUNDED, FINEST * float(np.abs(theirs).max(initial=0.0)), 1e-300)
    if agree(ours, theirs, close):
        return None
    if not _many(got, want):
        return None
    began = time.monotonic()
    for group in slips:
        rows = _rows(_worked_out(group[RIGHT]), theirs) if RIGHT in group else ...
        for words, work_out in group.items():
            if time.monotonic() - began > _LONG:
                return None
            made = _worked_out(work_out) if words and rows is not None else None
            made = made[rows] if made is not None else None
            if made is not None and made.shape == ours.shape and agree(made, ours, close):
                return Relation(How.SUPPOSED, names=(words,))
    return None


def _many(got: Array, want: Array) -> bool:
    """Whether so much is wrong that a slip does not give it by chance: texts of few ids are alike by many slips."""
    wrong = got[got != want]
    return got.dtype.kind == "f" or (len(wrong) >= _IDS and len(np.unique(wrong)) >= _DISTINCT)


def _rows(right: Array | None, part: Array) -> Any:
    """Return which rows of the right result these are: an index, or one for each; None where they are not there."""
    if right is None or right.shape[1:] != part.shape[part.ndim - right.ndim + 1 :]:
        return None
    known = {row.tobytes(): place for place, row in enumerate(right)}
    found = [known.get(row.tobytes()) for row in part.reshape(-1, *right.shape[1:])]
    if None in found:
        return None
    return found[0] if part.shape == right.shape[1:] else np.asarray(found)


def _worked_out(work_out: Callable[[], object]) -> Array | None:
    """Return a result with a slip; None where it has no meaning, or the code refuses what it takes to know it."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(work_out(), np.float64)
    except Exception:  # noqa: BLE001 -- what can't be worked out tells nothing
        return None
    return found if np.isfinite(found).all() else None
