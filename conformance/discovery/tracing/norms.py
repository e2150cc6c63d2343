"""Norms in a record: which numbers a value is the normalized form of, in which way, with which ε."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.discovery.tracing.linears import Linears
from conformkit.conformance.discovery.tracing.numbers import close
from conformkit.conformance.discovery.tracing.record import CallRecord, RecordedValue
from conformkit.spec.arrays import Array

__all__ = ["FoundNorm", "Norms"]

_WIDE = 3
"""Rows of fewer numbers say nothing."""
_MAX_STEPS = 16
"""Steps between the input of a norm that is written out and its result."""
_LARGEST = 0.01
"""No ε is larger."""
_SURE = 1e-9
_DEVIATIONS = {"": "biased", "std + ε": "population", "sample std + ε": "sample"}
"""Choices by the form of a divisor; RMSNorm has the first alone."""
_STOPS = frozenset({"embedding", "index", "bmm", "mm", "addmm"})


@dataclass(frozen=True, eq=False)
class FoundNorm:
    """`x`: the place of what is normalized; `unknown` says what no variant has, or nothing."""

    x: int
    kind: str
    eps: float
    known_to: float
    """How exactly the numbers tell ε."""
    deviation: str = "biased"
    weight: Array | None = None
    offset: bool = False
    bias: Array | None = None
    unknown: str = ""
    names: tuple[str, ...] = ()


class Norms:
    """Finds the norms of a record; each is looked for once."""

    def __init__(self, record: CallRecord, linears: Linears) -> None:
        self._record, self._linears = record, linears
        self._known: dict[int, FoundNorm | None] = {}

    def at(self, place: int) -> FoundNorm | None:
        """Return the norm that gave the numbers of a value; None if none did."""
        place = self._record.origin(place, whole=True)
        if place not in self._known:
            self._known[place] = self._found(place)
        return self._known[place]

    def _found(self, place: int) -> FoundNorm | None:
        value = self._record[place]
        if value.array.ndim < 2 or value.array.shape[-1] < _WIDE or self._linears.at(place) is not None:
            return None
        width, near = value.array.shape[-1], list(itertools.islice(self._near(place), _MAX_STEPS))
        vectors = self._vectors([place, *near], width)
        found = [
            norm
            for here in near
            if self._record[here].array.shape == value.array.shape
            for norm in _fits(self._record[here], value.array, vectors)
        ]
        return min(found, key=lambda n: (bool(n.unknown), not _is_round(n.eps, n.known_to), n.x), default=None)

    def _near(self, place: int) -> Iterator[int]:
        """Yield what a value was made of, the nearest first, up to what linear maps, tables and sums gave."""
        queue, seen = list(self._record[place].given), {place}
        while queue:
            here = queue.pop(0)
            if here in seen or here not in self._record.lively:
                continue
            seen.add(here)
            yield here
            value = self._record[here]
            sums = value.op == "add" and sum(g in self._record.lively for g in value.given) > 1
            if value.op not in _STOPS and not sums:
                queue.extend(value.given)

    def _vectors(self, near: list[int], width: int) -> list[RecordedValue]:
        """Return the parameters of this width that take part."""
        given = (g for here in near for g in self._record[here].given)
        held = (self._record.parameter(g) for g in given if g not in self._record.lively)
        return list(dict.fromkeys(v for v in held if v is not None and v.array.size == width))


def _fits(value: RecordedValue, given: Array, vectors: list[RecordedValue]) -> Iterator[FoundNorm]:
    """Yield the ways in which the given rows are those of a value, normalized."""
    x = value.array
    scales = [(v, o) for v in vectors for o in (False, True)] or []
    for (weight, offset), bias, centered in itertools.product(
        [*scales, (None, False)], [*vectors, None], (True, False)
    ):
        if weight is not None and weight is bias:
            continue
        gain = np.ones(x.shape[-1]) if weight is None else weight.array.reshape(-1) + offset
        shift = np.zeros(x.shape[-1]) if bias is None else bias.array.reshape(-1)
        rows = x - x.mean(axis=-1, keepdims=True) if centered else x
        deviation = _deviation(rows, (given - shift) / np.where(gain == 0.0, 1.0, gain), centered=centered)
        if deviation is None or (weight is None and bias is None and deviation[1] > _LARGEST / 2):
            continue
        form, eps, sure = deviation
        yield FoundNorm(
            value.place, "layernorm" if centered else "rmsnorm", eps, sure,
            _DEVIATIONS.get(form, "biased"),
            None if weight is None else weight.array.reshape(-1), offset,
            None if bias is None else bias.array.reshape(-1),
            "" if form in _DEVIATIONS and (centered or not form) else form,
            tuple(v.name for v in (weight, bias) if v is not None),
        )  # fmt: skip


def _deviation(rows: Array, unit: Array, *, centered: bool) -> tuple[str, float, float] | None:
    """Return how rows were divided to give unit rows, with which ε, and how surely; None if they were not."""
    squares = (unit * unit).sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        divisor = (rows * unit).sum(axis=-1, keepdims=True) / squares
        if not close(divisor * unit, rows):
            return None
        sure = _SURE if close(divisor * unit, rows, 1e-10) else 3e-6
    mean = (rows**2).mean(axis=-1, keepdims=True)
    sample = mean * rows.shape[-1] / (rows.shape[-1] - 1)
    whole = mean * rows.shape[-1]
    forms = {
        "": divisor**2 - mean,
        "std + ε": divisor - np.sqrt(mean),
        "the sum of squares, not the mean": divisor**2 - whole,
    }
    if centered:
        forms |= {"sample std + ε": divisor - np.sqrt(sample), "sample variance": divisor**2 - sample}
    for form, eps in forms.items():
        if float(np.ptp(eps)) < sure * (1 + float(mean.max())) and -sure < float(eps.mean()) < _LARGEST:
            return form, float(eps.mean()), sure
    return None


def _is_round(eps: float, sure: float) -> bool:
    """Whether it is a power of ten times a digit, as an ε is, or so small that nobody can tell."""
    return eps < sure or abs(float(f"{eps:.0e}") - eps) < max(1e-3 * eps, sure / 10)
