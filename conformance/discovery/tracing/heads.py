"""Which columns of which linear map each head's queries, keys or values are, and how they were turned since."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.discovery.tracing.linears import FoundLinear
from conformkit.conformance.discovery.tracing.numbers import close, columns, factor
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["HeadSource", "sources"]

_PAIR = 2


@dataclass(frozen=True, eq=False)
class HeadSource:
    """Where a head's numbers come from: columns of a linear map, times a factor, turned as a variant says, or not.

    `skewed`: each feature was mixed with its partner by position, as in a rotation, but that is none: the two features
    of a pair have different cosines or sines.
    """

    linear: FoundLinear
    chosen: Array
    times: float = 1.0
    turned: Variant | None = None
    skewed: bool = False

    @property
    def weight(self) -> Array:
        """Its rows of the matrix."""
        return self.linear.matrix[self.chosen]

    @property
    def bias(self) -> Array | None:
        """Its entries of the bias."""
        return None if self.linear.bias is None else self.linear.bias[self.chosen]


def sources(
    record: CallRecord, linears: Sequence[FoundLinear], heads: Array, batch: int, length: int
) -> list[HeadSource | None]:
    """Return the source of each head; heads (B, H, T, d)."""
    found = [_source(record, linears, heads[:, h], batch, length) for h in range(heads.shape[1])]
    if any(found) or heads.shape[0] * heads.shape[1] <= _PAIR or heads.shape[-1] % _PAIR:
        return found
    wholes = [(linear, w) for linear in linears for w in _laid_out(record[linear.place].array, batch, length)]
    return next((skewed for linear, whole in wholes if (skewed := _skewed(linear, whole, heads))), found)


def _source(
    record: CallRecord, linears: Sequence[FoundLinear], head: Array, batch: int, length: int
) -> HeadSource | None:
    for linear in linears:
        for whole in _laid_out(record[linear.place].array, batch, length):
            found = _as_it_is(linear, whole, head) or _turned(linear, whole, head)
            if found is not None:
                return found
    return None


def _laid_out(array: Array, batch: int, length: int) -> Iterator[Array]:
    if array.size == batch * length * array.shape[-1]:
        yield array.reshape(batch, length, -1)
        yield array.reshape(length, batch, -1).swapaxes(0, 1)


def _as_it_is(linear: FoundLinear, whole: Array, head: Array) -> HeadSource | None:
    chosen = columns(whole, head)
    if chosen is not None:
        return HeadSource(linear, chosen)
    sizes = np.abs(whole[:, 0]).max(axis=-1).min() if whole.size else 0.0
    if not sizes:
        return None
    chosen = columns(_unit(whole), _unit(head))
    times = factor(head, whole[..., chosen]) if chosen is not None else None
    return None if chosen is None or times is None else HeadSource(linear, chosen, times)


def _unit(array: Array) -> Array:
    """Divide each column by its length."""
    lengths = np.sqrt((array**2).sum(axis=(0, 1), keepdims=True))
    return np.asanyarray(array / np.where(lengths == 0.0, 1.0, lengths))


def _turned(linear: FoundLinear, whole: Array, head: Array) -> HeadSource | None:
    """Return the source of a head that was rotated by position: at the first one it is as it was."""
    chosen = columns(whole[:, :1], head[:, :1])
    if chosen is None or head.shape[1] < _PAIR:
        return None
    before = whole[..., chosen]
    for variant in _rotations(before, head):
        if close(rotate(before, variant), head, 1e-4):
            return HeadSource(linear, chosen, 1.0, variant)
    return None


def _skewed(linear: FoundLinear, whole: Array, heads: Array) -> list[HeadSource | None]:
    """Return the sources of heads (B, H, T, d) that were mixed in pairs by position and not rotated; none otherwise."""
    chosen = [columns(whole[:, :1], heads[:, h, :1]) for h in range(heads.shape[1])]
    known = [each for each in chosen if each is not None]
    if len(known) < len(chosen):
        return []
    before = np.stack([whole[..., each] for each in known], axis=1)
    places = np.arange(heads.shape[-1])
    half = len(places) // 2
    for layout, partner in (("halves", (places + half) % len(places)), ("pairs", places ^ 1)):
        same, other = _mixed(before, before[..., partner], heads)  # (T, d) each
        if not close(same * before + other * before[..., partner], heads, 1e-4):
            continue
        if close(same[:, partner], same, 1e-4) and close(-other[:, partner], other, 1e-4):
            return []  # a rotation by angles of its own
        variant = CANONICAL.but(positions="rotary", rotary_layout=layout)
        return [HeadSource(linear, each, 1.0, variant, skewed=True) for each in known]
    return []


def _mixed(one: Array, other: Array, given: Array) -> tuple[Array, Array]:
    """Return the numbers a and b for each position and feature with which a · one + b · other is nearest to given."""
    aa, bb, ab = ((x * y).sum(axis=(0, 1)) for x, y in ((one, one), (other, other), (one, other)))
    ag, bg = ((x * given).sum(axis=(0, 1)) for x in (one, other))
    below = np.maximum(aa * bb - ab * ab, 1e-300)
    return np.asarray((ag * bb - bg * ab) / below), np.asarray((bg * aa - ag * ab) / below)


def _rotations(before: Array, after: Array) -> Iterator[Variant]:
    """Yield the rotations that the last turned pair suggests, with neighbors as pairs and with halves."""
    moved = np.abs(before - after).max(axis=(0, 1)) > 1e-9 * max(float(np.abs(before).max()), 1e-30)
    width = int(moved.nonzero()[0].max(initial=-1)) + 1
    if width < _PAIR or width % _PAIR:
        return
    share = width / before.shape[-1]
    for layout in ("pairs", "halves"):
        a, b = (width - 2, width - 1) if layout == "pairs" else (width // 2 - 1, width - 1)
        angle = _angle(before[:, 1, a], before[:, 1, b], after[:, 1, a], after[:, 1, b])
        own = CANONICAL.but(positions="rotary", rotary_layout=layout, rotary_fraction=share)
        if width == _PAIR:
            yield own
        elif angle > 0.0:
            base = float(f"{angle ** (-width / (width - 2)):.4g}")
            yield own.but(rotary_base=base)


def _angle(x: Array, y: Array, u: Array, v: Array) -> float:
    """Return by which angle (x, y) was turned to give (u, v)."""
    return math.atan2(float((x * v - y * u).sum()), float((x * u + y * v).sum()))
