"""Submissions that are the same, or share functions that few others have: for a person to look at."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from conformkit.conformance.apps.grade.outputs.table import cell
from conformkit.conformance.apps.grade.record import Grade

__all__ = ["as_similar", "pairs"]

_COMMON = 0.25
"""A function that a larger share of the class has is given code, or the only way to write it."""
_SHARED_BY = 3
"""Not more than so many may share a function that is looked at in a small class."""
_LEAST = 0.4
"""Share of the rare functions of the smaller submission that both must have."""


def pairs(grades: Sequence[Grade]) -> Iterator[tuple[Grade, Grade, float, int]]:
    """Yield pairs with the share of common functions and their number: equal content first, then the most similar."""
    counts = Counter(name for grade in grades for name in set(grade.functions))
    most = max(_SHARED_BY, int(_COMMON * len(grades)))
    rare = [{name for name in grade.functions if 1 < counts[name] <= most} for grade in grades]
    owners: dict[str, list[int]] = {}
    for number, (grade, names) in enumerate(zip(grades, rare, strict=True)):
        for name in (*names, f"all of {grade.submission.digest}"):
            owners.setdefault(name, []).append(number)
    near = {pair for numbers in owners.values() for pair in combinations(numbers, 2)}
    found = [_compared(grades[a], grades[b], rare[a] & rare[b], counts, most) for a, b in sorted(near)]
    near_enough = [one for one in found if one[2] >= _LEAST]
    yield from sorted(near_enough, key=lambda one: (one[0].submission.digest != one[1].submission.digest, -one[2]))


def _compared(
    one: Grade, other: Grade, shared: set[str], counts: Counter[str], most: int
) -> tuple[Grade, Grade, float, int]:
    if one.submission.digest == other.submission.digest:
        return one, other, 1.0, len(set(one.functions))
    own = min(len({name for name in grade.functions if counts[name] <= most}) for grade in (one, other))
    return one, other, len(shared) / own if own else 0.0, len(shared)


def as_similar(grades: Sequence[Grade]) -> str:
    """Return a row for each pair."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["one", "other", "same_content", "percent", "functions"])
    for one, other, share, shared in pairs(grades):
        same = "yes" if one.submission.digest == other.submission.digest else "no"
        names = [cell(one.submission.name), cell(other.submission.name)]
        writer.writerow([*names, same, f"{100 * share:.0f}", str(shared)])
    return stream.getvalue()
