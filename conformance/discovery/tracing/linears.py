"""Linear maps in a record: x times a matrix of parameters, plus a bias."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.discovery.tracing.numbers import close
from conformkit.conformance.discovery.tracing.record import CallRecord, RecordedValue
from conformkit.spec.arrays import Array

__all__ = ["FoundLinear", "Linears"]

_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})


@dataclass(frozen=True, eq=False)
class FoundLinear:
    """What a value is: x (rows, in) · matrixᵀ + bias, `x` the place of what is read, `matrix` (out, in)."""

    place: int
    x: int
    matrix: Array
    weight: str
    bias: Array | None = None


class Linears:
    """Finds the linear maps of a record; each is looked for once."""

    def __init__(self, record: CallRecord) -> None:
        self._record = record
        self._known: dict[int, FoundLinear | None] = {}

    def at(self, place: int) -> FoundLinear | None:
        """Return the linear map that gave the numbers of a value, however they were moved since; None if none did."""
        place = self._record.origin(place, whole=True)
        if place not in self._known:
            self._known[place] = None
            self._known[place] = self._found(self._record[place])
        return self._known[place]

    def behind(self, place: int) -> list[FoundLinear]:
        """Return the linear maps from which a value was made, not those behind them, the nearest first."""
        found, queue, seen = [], [place], {place}
        while queue:
            here = queue.pop(0)
            linear = self.at(here)
            if linear is not None:
                found.append(linear)
                continue
            for other in self._record[here].given:
                if other in self._record.lively and other not in seen:
                    seen.add(other)
                    queue.append(other)
        return list(dict.fromkeys(found))

    def _found(self, value: RecordedValue) -> FoundLinear | None:
        if value.op in _PRODUCTS:
            return self._product(value)
        if value.op == "add" and len(value.given) > 1:
            return self._with_bias(value)
        return None

    def _with_bias(self, value: RecordedValue) -> FoundLinear | None:
        for inner, other in (value.given[:2], value.given[1::-1]):
            vector = self._record.parameter(other)
            linear = self.at(inner) if vector is not None and inner in self._record.lively else None
            bias = self._record[other].array.reshape(-1)
            if linear is not None and linear.bias is None and bias.size == len(linear.matrix):
                return replace(linear, place=value.place, bias=bias)
        return None

    def _product(self, value: RecordedValue) -> FoundLinear | None:
        """Return x · Wᵀ + b, if one of two factors is a parameter and the numbers say so."""
        *rest, one, other = value.given if len(value.given) > 1 else (0, 0, 0)
        if one not in self._record.lively or other in self._record.lively:
            return None
        weight = self._record.parameter(other)
        matrix = _alone(self._record[other].array)
        if weight is None or matrix is None:
            return None
        x, y = self._record[one].array, value.array
        rows, given = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        if rows.shape[-1] != len(matrix) or len(rows) != len(given):
            return None
        bias = next((self._record[b].array.reshape(-1) for b in rest if self._record.parameter(b)), None)
        plain = rows @ matrix
        want = plain if bias is None or bias.size != plain.shape[-1] else plain + bias
        return FoundLinear(value.place, one, matrix.T, weight.name, bias) if close(want, given) else None


def _alone(array: Array) -> Array | None:
    """Return a matrix (in, out), also where it was repeated for each entry of a batch."""
    if array.ndim > 2 and array.size and np.array_equal(array, np.broadcast_to(array[:1], array.shape)):
        return _alone(array[0])
    return array if array.ndim == 2 else None
