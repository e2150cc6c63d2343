"""What modern variants do to the scores of self-attention: norms of queries and keys, caps, windows, ALiBi."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, normalize
from conformkit.spec.masks import additive, causal_mask
from conformkit.spec.variants import Variant

__all__ = ["alibi_slopes", "capped", "normalized", "unscaled_queries", "visible", "within"]


def normalized(weights: Weights, name: str, x: Array, heads: int, variant: Variant) -> Array:
    """Return queries or keys (…, T, H·d) after the norm `name`, if the variant has one: by head, or over all features.

    Source: Henry et al. 2020; Dehghani et al. 2023, §2; over all features Walsh et al. 2025, §3.2.
    """
    if variant.qk_norm == "none":
        return x
    if variant.qk_norm == "all":
        return normalize(weights, name, x, variant)
    split = x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)
    return normalize(weights, name, split, variant).reshape(x.shape)


def unscaled_queries(q: Array, variant: Variant) -> Array:
    """Return queries (…, T, d) whose products with keys, divided by √d, are the variant's scores."""
    return q if variant.score_scale else np.asanyarray(q * np.sqrt(q.shape[-1]))


def capped(x: Array, cap: float) -> Array:
    """Return cap · tanh(x / cap), which stays within ±cap; x where the cap is 0. Source: Riviere et al. 2024, §2."""
    return np.asanyarray(cap * np.tanh(x / cap)) if cap else x


def alibi_slopes(heads: int, variant: Variant) -> Array:
    """Return how much each head's scores fall with each position of distance, (H,).

    A power of 2: 2^(-8(h + 1) / H). Otherwise the slopes of the power of 2 below, then every second one of the power
    above, as published; or, `geometric`, the same formula. Source: Press et al. 2022, §3 and their code.
    """
    below = 2 ** (heads.bit_length() - 1)
    if variant.alibi_slopes == "geometric" or below == heads:
        return np.asanyarray(2.0 ** (-8.0 * np.arange(1, heads + 1) / heads))
    further = 2.0 ** (-8.0 * np.arange(1, 2 * below + 1) / (2 * below))
    return np.concatenate([2.0 ** (-8.0 * np.arange(1, below + 1) / below), further[::2][: heads - below]])


def within(length: int, window: int) -> Array:
    """Return which keys causal attention sees, boolean (T, T): the last `window` ones, or with 0 all earlier ones."""
    distance = np.arange(length)[:, None] - np.arange(length)  # (T, T), of the key behind the query
    return causal_mask(length) & (distance < window) if window else causal_mask(length)


def visible(length: int, heads: int, variant: Variant, *, causal: bool) -> Array | None:
    """Return the mask of a sequence: causal and within the window if it is causal, and what ALiBi subtracts.

    Boolean (T, T), or numbers to add (H, T, T); None where nothing is hidden or subtracted.
    Source: window: Beltagy et al. 2020, §3; Jiang et al. 2023, §2.
    """
    mask = within(length, variant.window) if causal else None
    if variant.positions != "alibi":
        return mask
    distance = np.abs(np.arange(length)[:, None] - np.arange(length))  # (T, T)
    penalty = -alibi_slopes(heads, variant)[:, None, None] * distance  # (H, T, T)
    return np.asarray(penalty if mask is None else penalty + additive(mask))
