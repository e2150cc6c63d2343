"""Attention in a record: scores and their factor, mask, axis of the softmax, heads and how they are merged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from conformkit.conformance.discovery.tracing.distances import slopes_in
from conformkit.conformance.discovery.tracing.heads import HeadSource, sources
from conformkit.conformance.discovery.tracing.linears import Linears
from conformkit.conformance.discovery.tracing.numbers import CLOSE, by_text, centered, close, columns
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.spec.arrays import Array

__all__ = ["CallShape", "Core", "cores_behind", "merged_columns"]

_FUSED = "_scaled_dot_product"
_RANK = 4


@dataclass(frozen=True, slots=True)
class CallShape:
    """The sizes of the call: batch, length, and the width of what attention reads."""

    batch: int
    length: int
    width: int


@dataclass(eq=False)
class Core:
    """One product of weights and values; heads (B, H, T, d).

    `times` is the factor of the scores, None if they are not those of a softmax; `allowed` (T, T) which keys are seen;
    `axis` what the softmax is over: keys, queries or nothing; `later` what is done to scores of later positions that
    does not hide them; `slopes` (H,) how much the scores of each head fall with each position of distance, if they do.
    """

    given: Array
    q: list[HeadSource | None]
    k: list[HeadSource | None]
    v: list[HeadSource | None]
    times: float | None
    allowed: Array
    axis: str = "keys"
    sums_to_one: bool = True
    later: str = ""
    slopes: Array | None = None
    places: list[int] = field(default_factory=list)


def cores_behind(record: CallRecord, linears: Linears, place: int, shape: CallShape) -> list[Core]:
    """Return the attention whose heads were moved together to give a value, several where each head has its own."""
    found: list[Core] = []
    for here in _merged(record, place):
        value = record[here]
        is_product = value.op in {"bmm", "matmul"} and linears.at(here) is None and len(value.given) > 1
        if is_product or value.op.startswith(_FUSED):
            core = (_fused if not is_product else _written_out)(record, linears, here, shape)
            if core is not None:
                found.append(core)
    return found


def _merged(record: CallRecord, place: int) -> list[int]:
    """Return what a value was put together from by moving and joining numbers, in the order in which it was."""
    found, queue = [], [place]
    while queue:
        here = record.origin(queue.pop(0))
        value = record[here]
        if value.op in {"cat", "stack"}:
            queue = [*value.given, *queue]
        else:
            found.append(here)
    return list(dict.fromkeys(found))


def _by_head(array: Array, batch: int) -> Iterator[Array]:
    """Yield (B, H, …) of an array whose last two axes are (T, d): with heads inside the batch, and around it."""
    inner = array.shape[-2:]
    if array.size and array.size % (batch * math.prod(inner)) == 0:
        yield array.reshape(batch, -1, *inner)
        if array.ndim < _RANK:
            yield array.reshape(-1, batch, *inner).swapaxes(0, 1)


def _written_out(record: CallRecord, linears: Linears, place: int, shape: CallShape) -> Core | None:
    """Return attention written out as products: weights times values."""
    weights, values = record[place].given[-2:]
    scores = next((n for n in record.behind(weights) if _is_scores(record, linears, n, shape)), None)
    if scores is None or record[weights].array.shape[-2:] != (shape.length,) * 2:
        return None
    q, k = record[scores].given[-2:]
    for p, a, b, v, out in zip(
        *(_by_head(record[n].array, shape.batch) for n in (weights, q, k, values, place)), strict=False
    ):
        if a.shape[:2] != b.shape[:2] or a.shape[-1] != b.shape[-2] or p.shape[:2] != a.shape[:2]:
            continue
        core = _core(record, linears, (q, k, values), (a, b.swapaxes(-1, -2), v), out, shape)
        if any(core.v):
            alone = a @ b  # what the operation gave may have been scaled, or had something added, in one go
            core.times, core.axis, core.sums_to_one = _softmax(p, alone)
            if core.times is None:
                core.times, core.later = _barely_masked(p, alone)
            if core.times is None and not _adds_parameters(record, weights, scores):
                core.times, core.slopes = slopes_in(p, alone)
                core.sums_to_one = core.sums_to_one or core.slopes is not None
            core.allowed = (p > 0.0).any(axis=(0, 1))
            core.places = [scores, weights, place]
            return core
    return None


def _is_scores(record: CallRecord, linears: Linears, place: int, shape: CallShape) -> bool:
    value = record[place]
    square = value.array.ndim > 1 and value.array.shape[-2:] == (shape.length,) * 2
    return square and value.op in {"bmm", "baddbmm", "matmul"} and linears.at(place) is None and place in record.lively


def _core(
    record: CallRecord, linears: Linears, places: tuple[int, ...], heads: tuple[Array, Array, Array], out: Array,
    shape: CallShape,
) -> Core:  # fmt: skip
    q, k, v = (
        sources(record, linears.behind(place), each, shape.batch, shape.length)
        for place, each in zip(places, heads, strict=True)
    )
    return Core(out, q, k, v, None, np.ones((shape.length, shape.length), np.bool_))


def _softmax(weights: Array, scores: Array) -> tuple[float | None, str, bool]:
    """Return the factor f with which weights are a softmax of f · scores, its axis, and whether they sum to 1.

    The factor is 0 where all keys that are seen have the same weight.
    """
    seen = weights > 0.0
    logs = np.log(np.where(seen, weights, 1.0))
    uneven, spread = (float(np.abs(centered(each, seen, -1)).max(initial=0.0)) for each in (logs, scores))
    if spread and uneven < CLOSE * spread:
        return 0.0, "keys", True
    for axis, name in ((-1, "keys"), (-2, "queries")):
        a, b = (centered(each, seen, axis) for each in (logs, scores))
        square = float((b * b).sum())
        times = float((a * b).sum()) / square if square else 0.0
        if times and close(times * b, a):
            sums = np.where(seen.any(axis=axis), weights.sum(axis=axis), 1.0)
            return times, name, bool(np.abs(sums - 1.0).max() < 1e-5)
    return None, "", False


def _barely_masked(weights: Array, scores: Array) -> tuple[float | None, str]:
    """Return the factor of scores and what is done to those of later positions, where that hides nothing; or None."""
    seen = weights > 0.0
    if not seen.all() or weights.shape[-1] < _RANK:
        return None, ""
    later = np.triu(np.ones(weights.shape[-2:]), 1)
    a, kept = (centered(each, seen, -1) for each in (np.log(weights), scores * (1.0 - later)))
    times = float((a * kept).sum()) / float((kept * kept).sum() or 1.0)
    if close(times * kept, a):
        return times, "are set to 0"
    both = [centered(each, seen, -1) for each in (scores, np.broadcast_to(later, scores.shape))]
    (times, added), *_ = np.linalg.lstsq(np.stack([each.ravel() for each in both], axis=1), a.ravel(), rcond=None)
    if close(times * both[0] + added * both[1], a):
        return float(times), f"are changed by {added:.3g}, seen from earlier ones"
    return None, ""


def _fused(record: CallRecord, linears: Linears, place: int, shape: CallShape) -> Core | None:
    """Return attention of a fused kernel, whose factor and mask are tried."""
    if len(record[place].given) < 3 or record[place].array.shape[-2:-1] != (shape.length,):
        return None
    places = record[place].given[:3]
    for q, k, v, out in zip(*(_by_head(record[n].array, shape.batch) for n in (*places, place)), strict=False):
        if not k.shape[1] or q.shape[1] % k.shape[1] or k.shape[1] != v.shape[1]:
            continue
        core = _core(record, linears, places, (q, k, v), out, shape)
        many = q.shape[1] // k.shape[1]
        core.k, core.v = ([one for one in each for _ in range(many)] for each in (core.k, core.v))
        keys, values = (np.repeat(each, many, axis=1) for each in (k, v))
        core.times, core.allowed, core.later = _tried(q, keys, values, out, shape)
        if core.times is None and (weights := _with_mask(record, place, q, keys, values, out)) is not None:
            core.times, core.slopes = slopes_in(weights, q @ keys.swapaxes(-1, -2))
            core.allowed = np.asarray((weights > 0.0).any(axis=(0, 1)))
        core.places = [place]
        return core
    return None


def _tried(q: Array, k: Array, v: Array, out: Array, shape: CallShape) -> tuple[float | None, Array, str]:
    """Return factor and mask with which a fused kernel gives these numbers, as in `Core`; no factor if none does."""
    d, square = q.shape[-1], np.ones((shape.length, shape.length), np.bool_)
    scores = q @ k.swapaxes(-1, -2)
    factors = (d**-0.5, shape.width**-0.5, 1.0, 1.0 / d, 1.0 / shape.width, d**0.5)
    for times, seen in itertools.product(factors, (np.tril(square), square, np.tril(square, -1))):
        if close(_mixed(np.where(seen, times * scores, -np.inf), v), out):
            return times, seen, ""
    for added in (-1.0, 1.0):  # a mask of ones, as numbers
        if close(_mixed(scores * d**-0.5 + added * np.triu(square, 1), v), out):
            return d**-0.5, square, f"are changed by {added:.3g}, seen from earlier ones"
    return None, square, ""


def _with_mask(record: CallRecord, place: int, q: Array, k: Array, v: Array, out: Array) -> Array | None:
    """Return the weights that a fused kernel has with the numbers that it was given to add; None if others."""
    further = record[place].given[3:]
    if len(further) != 1 or any(record[n].op == "parameter" for n in record.behind(further[0])):
        return None
    try:
        weights = _shares(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5 + record[further[0]].array)
    except ValueError:
        return None
    return weights if weights.shape[-1] == v.shape[-2] and close(weights @ v, out) else None


def _adds_parameters(record: CallRecord, weights: int, scores: int) -> bool:
    """Whether something that is learned is added to scores before they become weights."""
    of_scores = set(record.behind(scores))
    return any(record[n].op == "parameter" for n in record.behind(weights) if n not in of_scores)


def _mixed(scores: Array, v: Array) -> Array:
    """Return what attention with these scores gives; 0 for a row that sees nothing."""
    mixed: Array = _shares(scores) @ v
    return mixed


def _shares(scores: Array) -> Array:
    """Return the softmax of scores over keys; 0 for a row that sees nothing."""
    peak = scores.max(axis=-1, keepdims=True)
    parts = np.exp(scores - np.where(np.isfinite(peak), peak, 0.0))
    return np.asarray(parts / np.maximum(parts.sum(axis=-1, keepdims=True), 1e-300))


def merged_columns(
    record: CallRecord, place: int, cores: list[Core], shape: CallShape
) -> tuple[list[Array] | None, str]:
    """Return which columns of a merged value each head's numbers are, or None and how else they were put together."""
    heads = [core.given[:, h] for core in cores for h in range(core.given.shape[1])]
    for whole in by_text(record[place].array, shape.batch, shape.length):
        found = [columns(whole, head) for head in heads]
        if all(one is not None for one in found):
            return [one for one in found if one is not None], ""
        if close(np.stack(heads, axis=1).reshape(whole.shape), whole):
            return None, "flattened"
    return None, ""
