"""What goes wrong around a softmax: in scores, in the mask that hides some of them, in the weights.

A definition says nothing of it; its steps do. What adds -inf is a mask, the next exponential belongs to a softmax,
the next division gives the weights, and the next product takes the values. Numbers that people write, such as limits,
are tried one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from conformkit.conformance.assertions.steps import Operation, Slip, layerless
from conformkit.conformance.findings.altered import Altered
from conformkit.spec.arrays import Array

__all__ = ["of_softmax"]

_LIMITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 25, 30, 50, 64, 80, 88, 100)
_FILLS = (0.0, 1e-9, -1.0, -2.0, -5.0, -10.0, -20.0, -100.0)
_ADDED = (1.0, 0.5, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)


class _Softmax(NamedTuple):
    """Its steps: queries times keys, the scores, what adds the mask, less each row's maximum, …, times values."""

    scores: Operation
    masked: Operation | None
    shifted: Operation
    exponentials: Operation
    weights: Operation
    products: tuple[Operation | None, Operation | None]
    """Queries times keys, and weights times values."""


def of_softmax(steps: Iterable[Operation]) -> Iterator[Slip]:
    """Yield what may go wrong around each softmax of these steps, in all layers."""
    found = list({one.exponentials.key: one for one in _softmaxes(list(steps))}.values())
    for one in found:
        where = f", in `{layerless(one.scores.label).rpartition('.')[0]}`" if len(found) > 1 else ""
        yield from _of_masks(one, where)
        yield from _of_scores(one, where)
        yield from _of_products(one, where)


def _softmaxes(steps: list[Operation]) -> Iterator[_Softmax]:
    for place, step in enumerate(steps):
        if step.key[0] != "exp" or len(step.shape) < 2:
            continue
        before = [one for one in steps[:place] if one.label == step.label and one.shape == step.shape]
        after = [one for one in steps[place + 1 :] if one.label == step.label and one.shape == step.shape]
        if len(before) < 2 or not after or after[0].key[0] not in {"divide", "true_divide"}:
            continue
        *earlier, scores, shifted = before  # the last one subtracts each row's maximum
        masked = scores if scores.hides else None
        if masked is not None and not earlier:
            continue
        times_keys = next((one for one in reversed(before) if one.key[0] == "matmul"), None)
        times_values = next((one for one in steps[place + 1 :] if one.key[0] == "matmul"), None)
        products = times_keys, times_values
        yield _Softmax(earlier[-1] if masked is not None else scores, masked, shifted, step, after[0], products)


def _of_masks(softmax: _Softmax, where: str) -> Iterator[Slip]:
    at = softmax.masked
    if at is None:
        return
    for words, seen in _SEEN.items():
        yield Slip(at.key, Altered.HIDDEN, (words + where,), made=partial(_seen, seen))
    for fill in _FILLS:
        words = f"hidden scores are {fill:g}, not −∞".replace("-", "−")
        yield Slip(at.key, Altered.HIDDEN, (words + where,), made=partial(_filled, fill))
    late = "the mask is applied after the softmax"
    yield _late(softmax, late + where, _kept)
    yield _late(softmax, f"{late}, and the rest is divided by its sum{where}", partial(_shared_anew, 0.0))
    for little in _ADDED:
        words = f"{late}, and the rest is divided by its sum + {little:g}{where}"
        yield _late(softmax, words, partial(_shared_anew, little))


def _of_scores(softmax: _Softmax, where: str) -> Iterator[Slip]:
    scores = softmax.scores
    for limit in _LIMITS:
        if limit < scores.largest:
            words = f"scores are limited to ±{limit}{where}"
            yield Slip(scores.key, Altered.SCORED, (words,), made=partial(_limited, limit))
    for words, added in _TO_SUMS.items():
        at, later = softmax.shifted.key, softmax.weights.key
        yield Slip(at, Altered.SCORED, (words + where,), made=_as_it_is, later=later, remade=partial(_less, added))
    for little in _ADDED:
        words = f"{little:g} is added to each exponential{where}"
        yield Slip(softmax.exponentials.key, Altered.SCORED, (words,), made=partial(_raised, little))
        words = f"weights are at least {little:g}{where}"
        yield Slip(softmax.weights.key, Altered.SCORED, (words,), made=partial(_floored, little))


def _of_products(softmax: _Softmax, where: str) -> Iterator[Slip]:
    """Yield that keys or values come in another order than the other ones: where nothing is hidden, it is the same."""
    for name, step, axis in (("keys", softmax.products[0], -1), ("values", softmax.products[1], -2)):
        if step is None:
            continue
        for words, order in _ORDERS.items():
            both = "" if softmax.masked is not None else ", their " + ("values" if name == "keys" else "keys") + " not"
            told = (f"{name} are {words}{both}{where}",)
            yield Slip(step.key, Altered.ORDERED, told, made=partial(_ordered, order, axis))
        heads = step.shapes[1][-3] if len(step.shapes[1]) > 2 else 1
        for groups in (one for one in range(2, heads // 2 + 1) if heads % one == 0):
            tiled = np.tile(np.arange(0, heads, heads // groups), heads // groups)
            told = (f"{name} of {groups} groups are tiled, not repeated{where}",)
            yield Slip(step.key, Altered.ORDERED, told, made=partial(_ordered, tiled.__getitem__, -3))


def _late(softmax: _Softmax, words: str, remade: Callable[[Array, Array], Array]) -> Slip:
    assert softmax.masked is not None
    key, later = softmax.masked.key, softmax.weights.key
    return Slip(key, Altered.HIDDEN, (words,), made=partial(_seen, np.ones_like), later=later, remade=remade)


def _seen(seen: Callable[[Array], Array], operands: list[Array], result: Array) -> Array:
    """Return scores under another mask than the one that is added."""
    scores, mask = (np.broadcast_to(one, result.shape) for one in operands)
    hidden = np.isneginf(mask)
    return np.where(seen(~hidden), scores + np.where(hidden, 0.0, mask), -np.inf)


def _ordered(order: Callable[[Array], Array], axis: int, operands: list[Array], _: Array) -> Array:
    """Return the product with its second operand's indices along an axis in another order."""
    first, second = operands
    return np.asarray(first @ np.take(second, order(np.arange(second.shape[axis])), axis=axis))


def _filled(fill: float, operands: list[Array], result: Array) -> Array:
    return np.where(np.isneginf(operands[-1]), fill, result)


def _limited(limit: float, _: list[Array], result: Array) -> Array:
    return np.clip(result, -limit, limit)


def _raised(little: float, _: list[Array], result: Array) -> Array:
    return np.asarray(result + little)


def _as_it_is(_: list[Array], result: Array) -> Array:
    return result


def _less(added: Callable[[Array], Array], weights: Array, maximum: Array) -> Array:
    """Return weights where something is added to the sums of their exponentials: these are 1 / the largest weight."""
    return np.asarray(weights / (1 + added(maximum) * weights.max(axis=-1, keepdims=True)))


def _floored(little: float, _: list[Array], result: Array) -> Array:
    return np.maximum(result, little)


def _kept(weights: Array, mask: Array) -> Array:
    return np.where(np.isneginf(mask), 0.0, weights)


def _shared_anew(little: float, weights: Array, mask: Array) -> Array:
    kept = _kept(weights, mask)
    return np.asarray(kept / (kept.sum(axis=-1, keepdims=True) + little))


def _near(shown: Array, place: int) -> Array:
    """Return where a key is so many places behind its query: they end together."""
    return np.eye(shown.shape[-2], shown.shape[-1], k=shown.shape[-1] - shown.shape[-2] + place, dtype=np.bool_)


def _one_further(shown: Array) -> Array:
    return shown | np.roll(shown, 1, axis=-1) & _near(shown, 1)


def _without_itself(shown: Array) -> Array:
    return shown & ~_near(shown, 0)


def _second_first(shown: Array) -> Array:
    return np.concatenate([shown[..., 1:2, :], shown[..., 1:, :]], axis=-2)


def _transposed(shown: Array) -> Array:
    return np.swapaxes(shown, -1, -2) if shown.shape[-1] == shown.shape[-2] else shown


def _of_queries(shown: Array) -> Array:
    """Return what is shown where keys that every query must not see hide the queries at their places."""
    if shown.shape[-1] != shown.shape[-2]:
        return shown
    later = np.triu(np.ones(shown.shape[-2:], np.bool_), 1)
    causal = not (shown & later).any()
    visible = np.asarray(shown.any(axis=-2, keepdims=True))
    return np.asarray(np.swapaxes(visible, -1, -2) & ~(later & causal))


_TO_SUMS: Mapping[str, Callable[[Array], Array]] = {
    "1 is added to the sum of the exponentials": lambda maximum: np.exp(-maximum),
    "1 is added to the sum of the exponentials, after their maximum is subtracted": np.ones_like,
}
_SEEN: Mapping[str, Callable[[Array], Array]] = {
    "nothing is hidden": np.ones_like,
    "the mask is inverted": np.logical_not,
    "the mask is transposed": _transposed,
    "each position also sees the next one": _one_further,
    "no position sees itself": _without_itself,
    "the first position also sees the second": _second_first,
    "padding hides queries, not keys": _of_queries,
}
_ORDERS: Mapping[str, Callable[[Array], Array]] = {
    "in reverse order": lambda it: it[::-1],
    "one place late": lambda it: np.roll(it, 1),
    "one place early": lambda it: np.roll(it, -1),
}
