"""Scores that fall with the distance between positions, as ALiBi's do: by how much, and by how much they are to."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.discovery.tracing.numbers import centered, close
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.spec.arrays import Array
from conformkit.spec.scores import alibi_slopes
from conformkit.spec.variants import CANONICAL, alternatives

__all__ = ["read_slopes", "slopes_in"]

_RELATIVE_ERROR = 1e-4


def slopes_in(weights: Array, scores: Array) -> tuple[float | None, Array | None]:
    """Return f and slopes (H,) with which weights are a softmax of f · scores - slope · distance; None if none are.

    No slopes where all are 0: a mask of another form does not fall with distance.

    Shapes: weights, scores (B, H, T, T), the scores neither divided nor masked.
    """
    seen, heads = weights > 0.0, weights.shape[1]
    if not close(weights.sum(axis=-1), seen.any(axis=-1).astype(float)):
        return None, None
    places = np.arange(weights.shape[-1])
    distance = np.broadcast_to(np.abs(places[:, None] - places), weights.shape)
    logs, own, far = (centered(a, seen, -1) for a in (np.log(np.where(seen, weights, 1.0)), scores, distance))
    terms = [own, *(np.where(np.arange(heads)[:, None, None] == h, -far, 0.0) for h in range(heads))]
    found, *_ = np.linalg.lstsq(np.stack([t.ravel() for t in terms], axis=1), logs.ravel(), rcond=None)
    if not found[0] or not close(sum(f * t for f, t in zip(found, terms, strict=True)), logs):
        return None, None
    slopes = np.asarray(found[1:])
    return float(found[0]), slopes if float(np.abs(slopes).max()) > _RELATIVE_ERROR else None


def read_slopes(reading: ReadOff, path: str, slopes: Array) -> None:
    """Note ALiBi and which slopes it has, or that they are none of those that are published."""
    reading.choose(path, "positions", "alibi")
    ways = (CANONICAL.alibi_slopes, *alternatives("alibi_slopes", CANONICAL.alibi_slopes))
    wanted = {way: alibi_slopes(len(slopes), CANONICAL.but(positions="alibi", alibi_slopes=way)) for way in ways}
    fitting = [way for way, want in wanted.items() if close(slopes, want, _RELATIVE_ERROR)]
    reading.choose(path, "alibi_slopes", *(fitting or ways))
    if not fitting:
        found, want = (", ".join(f"{s:.3g}" for s in each) for each in (slopes, wanted[ways[0]]))
        reading.find(path, f"scores fall by {found} a position of distance; expected {want}, ALiBi's slopes",
                     slopes=slopes.tolist())  # fmt: skip
