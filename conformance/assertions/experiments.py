"""What a wrong result is the right one of: the definition is asked with other weights or inputs, the code once more.

`relations.py` compares two arrays. Where that finds nothing, this works out what the definition gives if a bias were
left out, a matrix were not applied, two inputs were exchanged, and calls the code again, without its mask, or with
one row of the batch. What then agrees in every number is no coincidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice

import numpy as np

from conformkit.conformance.assertions.agreement import agree, closeness, in_numbers
from conformkit.conformance.assertions.changes import Arrays, of_inputs, of_weights
from conformkit.conformance.assertions.observed import Observed
from conformkit.conformance.assertions.softmax_slips import of_softmax
from conformkit.conformance.assertions.steps import Defined, operations, slips, with_slip
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.findings.altered import Altered
from conformkit.conformance.findings.relation import How, Relation
from conformkit.spec.arrays import Array

__all__ = ["experiment"]

_MOST, _CALLS = 200, 12
"""So many results of the definition are worked out at most, with other arrays and with other steps, and so many calls
are made."""
_SLOW = 0.5
"""Code of which a call takes more seconds than this is not called again."""
_LARGEST, _HEAVIEST = 4_000, 20_000
"""Larger results, and more numbers in the weights, are not tried."""


def experiment(got: Array, want: Array, allowed: float, calls: Iterable[Observed]) -> Relation | None:
    """Return what explains a wrong result of one of these calls, the last first; None where nothing does."""
    if not 1 < got.size <= _LARGEST or (both := in_numbers(got, want)) is None:
        return None
    got, want = both
    close = closeness(want, allowed)
    if agree(got, want, close):
        return None
    for call in reversed(list(calls)):
        rows = _rows(got, call.out)
        if rows is not None:
            trial = _Trial(call, rows, got, want, close)
            return next(iter(trial.found()), None)
    return None


def _rows(part: Array, whole: Array) -> Array | None:
    """Return which rows of a call's result these are; None where they are not all there."""
    if whole.ndim == 0 or part.shape[-1:] != whole.shape[-1:] or whole.size > _LARGEST:
        return None
    if part.shape == whole.shape and np.array_equal(part, whole):
        return np.arange(whole.size // whole.shape[-1])
    known = {row.tobytes(): place for place, row in enumerate(_flat(whole))}
    places = [known.get(row.tobytes(), -1) for row in _flat(part)]
    return np.asarray(places) if places and min(places) >= 0 else None


def _flat(array: Array) -> Array:
    return np.ascontiguousarray(array, np.float64).reshape(-1, array.shape[-1])


class _Trial:
    """Experiments with the call that gave the wrong rows."""

    def __init__(self, call: Observed, rows: Array, got: Array, want: Array, close: float) -> None:
        self._call, self._rows = call, rows
        self._got, self._want, self._close = _flat(got), _flat(want), close
        self._over = False

    def found(self) -> Iterator[Relation]:
        """Yield what explains it, the most telling first."""
        yield from islice(self._by_definition(), 1)
        yield from islice(self._by_calls(), 1)

    def _by_definition(self) -> Iterator[Relation]:
        call = self._call
        if call.defined is None or sum(array.size for array in call.weights.values()) > _HEAVIEST:
            return
        if not self._is(self._want, call.weights, call.given):
            return
        inputs = ((found, call.weights, found.arrays) for found in of_inputs(call.given, call.optional))
        weights = ((found, found.arrays, call.given) for found in of_weights(call.weights))
        for found, own, given in islice(chain(inputs, weights), _MOST):
            if self._is(self._got, own, given):
                yield Relation(How.MADE, names=found.names, change=found.change)
        yield from self._by_steps(call.defined)

    def _by_steps(self, defined: Defined) -> Iterator[Relation]:
        weights, given = self._call.weights, self._call.given
        steps = operations(defined, weights, given)
        for slip in chain(of_softmax(steps), islice(slips(steps), _MOST)):
            if self._is(self._got, weights, given, partial(with_slip, defined, slip=slip)):
                yield Relation(How.MADE, names=slip.names, change=slip.change)

    def _is(self, rows: Array, weights: Arrays, given: Arrays, defined: Defined | None = None) -> bool:
        """Whether the definition, or another one, gives these rows for such weights and inputs."""
        made = self._defined(weights, given, defined)
        return made is not None and self._agrees(made, rows)

    def _defined(self, weights: Arrays, given: Arrays, other: Defined | None = None) -> Array | None:
        """Return what the definition, or another one, gives; None where it has no meaning for such arrays."""
        defined = other or self._call.defined
        assert defined is not None
        try:
            with np.errstate(all="ignore"):
                return defined(weights, given)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return None

    def _agrees(self, made: Array, rows: Array) -> bool:
        if made.shape[-1:] != rows.shape[-1:] or made.size < self._call.out.size:
            return False
        return agree(_flat(made)[self._rows], rows, self._close)

    def _by_calls(self) -> Iterator[Relation]:
        call = self._call
        if call.again is None:
            return
        if call.steady and (now := self._asked(call.given)) is not None and not self._agrees(now, self._got):
            right = self._agrees(now, self._want)
            yield Relation(How.RIGHT, change=Altered.AGAIN) if right else Relation(How.UNSTEADY)
            return
        for found in islice(of_inputs(call.given, call.optional), _CALLS):
            if (now := self._asked(found.arrays)) is None:
                continue
            if found.change is Altered.ABSENT and self._matters(found.arrays) and self._agrees(now, self._got):
                yield Relation(How.SAME, names=found.names, change=found.change)
            elif self._agrees(now, self._want):
                yield Relation(How.RIGHT, names=found.names, change=found.change)
        yield from self._alone()
        yield from self._sees()

    def _matters(self, given: Arrays) -> bool:
        """Whether the definition, where there is one, gives something else without what is missing here."""
        call = self._call
        if call.defined is None or not call.weights:
            return True
        right, without = (self._defined(call.weights, arrays) for arrays in (call.given, given))
        if right is None or without is None or right.size < call.out.size:
            return False
        return not self._agrees(without, _flat(right)[self._rows])

    def _asked(self, given: Arrays) -> Array | None:
        """Return what the code gives for other inputs; None where it refuses, is lost, or takes long."""
        assert self._call.again is not None
        if self._over:
            return None
        began = time.monotonic()
        try:
            return self._call.again(given)
        except Exception as trouble:  # noqa: BLE001 -- an experiment that fails tells nothing
            self._over = isinstance(trouble, DriverError) and getattr(trouble, "kind", "") != "exception"
            return None
        finally:
            self._over = self._over or time.monotonic() - began > _SLOW

    def _alone(self) -> Iterator[Relation]:
        """Yield that a row is right by itself, where its batch has several."""
        call, out = self._call, self._call.out
        count = out.shape[0] if out.ndim > 1 else 0
        wrong = np.abs(self._got - self._want).max(axis=1) > self._close
        if count < 2 or not wrong.any() or any(array.shape[:1] != (count,) for array in call.given.values()):
            return
        each = out.size // out.shape[-1] // count
        row = int(self._rows[wrong][0]) // each
        now = self._asked({name: array[row : row + 1] for name, array in call.given.items()})
        inside = self._rows // each == row
        if now is None or now.shape != (1, *out.shape[1:]):
            return
        if agree(_flat(now)[self._rows[inside] - row * each], self._want[inside], self._close):
            yield Relation(How.RIGHT, change=Altered.ALONE)

    def _sees(self) -> Iterator[Relation]:
        """Yield that a wrong row changes with later ids, or with hidden ones, or does not with those before it."""
        call, ids = self._call, self._call.given.get("ids")
        wrong = np.flatnonzero(np.abs(self._got - self._want).max(axis=1) > self._close)
        if ids is None or ids.ndim != 2 or call.out.shape[:-1] != ids.shape or not call.causal or not wrong.size:
            return
        at = int(self._rows[wrong[-1]])
        row, place = divmod(at, ids.shape[1])
        mask, places = call.given.get("mask"), np.arange(ids.shape[1])
        real = (
            np.ones(ids.shape[1], np.bool_) if mask is None or mask.shape != ids.shape else mask[row].astype(np.bool_)
        )
        other = (ids + 1) % (ids.max() + 1)
        for how, said, chosen in (
            (How.READS, "later ids", places > place), (How.READS, "ids that the mask hides", ~real),
            (How.BLIND, "the ids before it", real & (places < place)),
        ):  # fmt: skip
            now = self._asked({**call.given, "ids": np.where(chosen, other, ids)}) if chosen.any() else None
            if now is None or now.shape != call.out.shape:
                continue
            same = agree(_flat(now)[at], _flat(call.out)[at], self._close)
            if same == (how is How.BLIND):
                yield Relation(how, names=(said,))
