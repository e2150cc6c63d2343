"""Feed-forward networks in a record: the linear maps, what stands between them, and which function that is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.discovery.tracing.linears import FoundLinear, Linears
from conformkit.conformance.discovery.tracing.numbers import close, columns
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.spec.arrays import Array
from conformkit.spec.layers import activate
from conformkit.spec.variants import CANONICAL, alternatives

__all__ = ["FoundNetwork", "network"]

_MAX_STEPS = 24
_ACTIVATIONS = (CANONICAL.activation, *alternatives("activation", CANONICAL.activation))


@dataclass(frozen=True, eq=False)
class FoundNetwork:
    """A feed-forward network: `reads` is the place of its input, `activation` None if no variant has it."""

    reads: int
    activation: str | None
    gated: bool
    weights: dict[str, Array]
    part: str = ""

    @property
    def biased(self) -> bool:
        """Whether its maps have biases; True where some have."""
        return any(name.endswith(".bias") for name in self.weights)


@dataclass(frozen=True, eq=False)
class _Slice:
    """Some of the numbers of a linear map, as they are."""

    array: Array
    linear: FoundLinear
    chosen: Array


def network(record: CallRecord, linears: Linears, down: FoundLinear) -> FoundNetwork | None:
    """Return the network whose last map this is; None if it is another thing."""
    hidden = _rows(record[down.x].array)
    found = _slices(record, linears, down.x, hidden.shape)
    weights = _of("down", down, np.arange(len(down.matrix)))
    part = record[down.place].part
    for one in found:
        for name in _ACTIVATIONS:
            if close(activate(one.array, CANONICAL.but(activation=name)), hidden):
                return FoundNetwork(one.linear.x, str(name), False, weights | _of("up", one.linear, one.chosen), part)
    for gate, up in itertools.permutations(found, 2):
        for name in _ACTIVATIONS:
            if close(activate(gate.array, CANONICAL.but(activation=name)) * up.array, hidden):
                own = _of("gate", gate.linear, gate.chosen) | _of("up", up.linear, up.chosen)
                return FoundNetwork(up.linear.x, str(name), True, weights | own, part)
    return _unknown(found, weights, part)


def _unknown(found: list[_Slice], weights: dict[str, Array], part: str) -> FoundNetwork | None:
    """Return a network of two or three maps between which is something that no variant has."""
    whole = list({id(one.linear): one for one in found}.values())
    if len(whole) == 1:
        one = whole[0]
        return FoundNetwork(one.linear.x, None, False, weights | _of("up", one.linear, one.chosen), part)
    return None


def _of(name: str, linear: FoundLinear, chosen: Array) -> dict[str, Array]:
    found = {f"{name}.weight": linear.matrix[chosen]}
    return found | ({} if linear.bias is None else {f"{name}.bias": linear.bias[chosen]})


def _slices(record: CallRecord, linears: Linears, place: int, shape: tuple[int, ...]) -> list[_Slice]:
    """Return the values of this shape behind a place that are columns of a linear map, moved at most."""
    found: list[_Slice] = []
    for here in itertools.islice(_between(record, linears, place), _MAX_STEPS):
        array, linear = _rows(record[here].array), linears.at(record.origin(here))
        if linear is None or array.shape != shape:
            continue
        chosen = columns(record[linear.place].array, array)
        if chosen is not None and not any(s.linear is linear and np.array_equal(s.chosen, chosen) for s in found):
            found.append(_Slice(array, linear, chosen))
    return found


def _rows(array: Array) -> Array:
    """Return rows of features, whatever the axes before are: maps flatten them in passing."""
    return array.reshape(-1, array.shape[-1]) if array.ndim and array.shape[-1] else array.reshape(0, 0)


def _between(record: CallRecord, linears: Linears, place: int) -> Iterator[int]:
    """Yield a value and what it was made of, up to linear maps."""
    queue, seen = [place], {place}
    while queue:
        here = queue.pop(0)
        yield here
        if linears.at(here) is None:
            queue += [g for g in record[here].given if g in record.lively and g not in seen]
            seen.update(record[here].given)
