"""The record of one call as the harness reads it: values, each with its numbers and what it was made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["MOVES", "CallRecord", "RecordError", "RecordedValue"]

MOVES = frozenset({
    "view", "_unsafe_view", "reshape", "_reshape_alias", "permute", "transpose", "t", "mT", "expand", "clone",
    "_to_copy", "alias", "detach", "unsqueeze", "squeeze", "contiguous", "split", "split_with_sizes", "unbind",
    "slice", "select", "chunk", "lift_fresh", "native_dropout", "dropout", "repeat_interleave", "unfold",
    "diagonal", "narrow", "copy", "unsafe_split", "unsafe_chunk",
})  # fmt: skip
"""Operations that give numbers of their input as they are, all or some of them, in this order or another."""
_HELD = ("parameter", "buffer")


class RecordError(ValueError):
    """The record does not fit together: there are more or fewer numbers than its values have."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedValue:
    """What one operation gave: `place` in the record, `given` the places of what it was made of."""

    place: int
    op: str
    given: tuple[int, ...]
    array: Array
    part: str
    name: str
    scalars: tuple[float, ...]


@dataclass(frozen=True)
class CallRecord:
    """All values of a call, in the order in which they were made; `out` is the place of the result."""

    values: Sequence[RecordedValue]
    out: int | None

    @classmethod
    def of(cls, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> CallRecord:
        """Read a reply to `observe`, whose form was checked when it came. Raises RecordError."""
        numbers = arrays["numbers"]
        extents = [tuple(item["shape"]) for item in header["values"]]
        ends = list(itertools.accumulate((int(np.prod(e, dtype=np.int64)) for e in extents), initial=0))
        place = header["place"]
        if numbers.ndim != 1 or numbers.size != ends[-1] or (place is not None and place >= len(extents)):
            raise RecordError(f"a record of {len(extents)} values has {numbers.size} numbers, expected {ends[-1]}")
        values = tuple(
            RecordedValue(
                n, item["op"], tuple(item["given"]), numbers[ends[n] : ends[n + 1]].astype(np.float64).reshape(extent),
                item["part"], item["name"], tuple(map(float, item["scalars"])),
            )
            for n, (item, extent) in enumerate(zip(header["values"], extents, strict=True))
        )  # fmt: skip
        return cls(values, None if header["cut"] else place)

    def __getitem__(self, place: int) -> RecordedValue:
        """Return the value at a place."""
        return self.values[place]

    def origin(self, place: int, *, whole: bool = False) -> int:
        """Return what a value's numbers were before they were only moved about; `whole`: all of them."""
        value = self[place]
        while value.op in MOVES and value.given:
            before = self[value.given[0]]
            if whole and before.array.size != value.array.size:
                break
            value = before
        return self._firsts[value.place] if whole else value.place

    def parameter(self, place: int) -> RecordedValue | None:
        """Return the parameter whose numbers, or some of them, a value has; None if it is made of something else."""
        origin = self[self.origin(place)]
        return origin if origin.op in _HELD else None

    @cached_property
    def lively(self) -> frozenset[int]:
        """The places of values that depend on the input, or on positions by way of a table."""
        found: set[int] = set()
        for value in self.values:
            looked_up = value.op in {"embedding", "index", "index_select"} and value.given
            if (
                value.op == "input"
                or any(g in found for g in value.given)
                or (looked_up and self.parameter(value.given[0]))
            ):
                found.add(value.place)
        return frozenset(found)

    def behind(self, place: int, ends: frozenset[str] = frozenset()) -> Iterator[int]:
        """Yield a value and what it was made of, the nearest first; not beyond operations of these names."""
        queue, seen = [place], {place}
        while queue:
            here = queue.pop(0)
            yield here
            if self[here].op in ends and here != place:
                continue
            for other in self[here].given:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)

    def reaches(self, place: int, other: int) -> bool:
        """Whether a value was made of another one, directly or not."""
        return bool(self._behind(place) >> other & 1)

    def _behind(self, place: int) -> int:
        return self._masks[place]

    @cached_property
    def _masks(self) -> list[int]:
        """For each value, the set of those it was made of as the bits of a number: all at once, without recursion."""
        found: list[int] = []
        for value in self.values:
            bits = 1 << value.place
            for other in value.given:
                bits |= found[other] | found[self._firsts[other]]
            found.append(bits)
        return found

    @cached_property
    def _firsts(self) -> list[int]:
        """For each value, the first one with the same numbers: code may compute a norm twice."""
        known: dict[tuple[Any, ...], int] = {}
        found = []
        for value in self.values:
            key = (value.array.shape, value.array.tobytes())
            found.append(known.setdefault(key, value.place) if value.place in self.lively else value.place)
        return found
