"""Multi-head latent attention: how queries, keys and values come from small vectors that all heads share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.heads import split_heads
from conformkit.spec.layers import Weights, linear, normalize
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.variants import Variant

__all__ = ["BESIDE_A_LATENT", "WITHOUT_A_LATENT", "is_defined", "latent_heads"]

BESIDE_A_LATENT: Mapping[str, Any] = {
    "kv_heads": "num_heads", "qk_norm": "none", "score_cap": 0.0, "sinks": False, "output_gate": "none",
    "output_projection": True,
    "score_scale": True, "qkv_bias": False, "rotary_fraction": 1.0, "window_rotary_base": 0.0,
}  # fmt: skip
"""The only values that the definition of attention with a latent has."""
WITHOUT_A_LATENT = frozenset({"alibi", "relative"})
"""Positions that no attention with a latent has."""


def latent_heads(weights: Weights, x: Array, heads: int, variant: Variant) -> tuple[Array, Array, Array]:
    """Return queries and keys (…, H, T, d + r), values (…, H, T, d_v), for x (…, T, D).

    Keys and values come from N(x W_cᵀ), whose width is the variant's `latent`, queries from x or from a latent of their
    own. Where positions are rotary, r more features of queries and keys rotate; those of keys come straight from x and
    are the same for all heads. Source: Liu et al. 2024, eq. 9-19.
    """
    read = x
    if variant.query_latent != "0":
        read = normalize(weights, "q_latent_norm", linear(weights, "q_latent", x), variant)  # (…, T, c_q)
    latent = normalize(weights, "kv_latent_norm", linear(weights, "kv_latent", x), variant)  # (…, T, c)
    q = split_heads(linear(weights, "q", read), heads)  # (…, H, T, d)
    k, v = (split_heads(linear(weights, name, latent), heads) for name in "kv")  # (…, H, T, d), (…, H, T, d_v)
    if variant.positions == "rotary":
        turned = rotate(split_heads(linear(weights, "q_rotary", read), heads), variant)  # (…, H, T, r)
        shared = rotate(linear(weights, "k_rotary", x), variant)[..., None, :, :]  # (…, 1, T, r)
        q = np.concatenate([q, turned], axis=-1)
        k = np.concatenate([k, np.repeat(shared, heads, axis=-3)], axis=-1)
    return q, k, v


def is_defined(variant: Variant) -> bool:
    """Whether the choices of attention go together: those beside a latent are few."""
    if not variant.has_latent:
        return True
    return variant.positions not in WITHOUT_A_LATENT and all(
        getattr(variant, name) == only for name, only in BESIDE_A_LATENT.items()
    )
