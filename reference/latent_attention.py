"""Multi-head latent attention: what all heads need of keys and values is one small vector a position.

    c = N(W_C x) ∈ ℝ^c        k[h] = [W_K[h] c; R(p) W_R x]        v[h] = W_V[h] c
    c' = N(W_C' x)            q[h] = [W_Q[h] c'; R(p) W_QR[h] c']  or the same of x, where queries have no latent

N is a norm, R(p) the rotation of position p. Only r features of a key rotate, the same for all heads, and these come
straight from x: rotated ones could not be computed from a latent that knows no position. Scores are divided by the root
of the whole width d + r. Liu et al. 2024 (DeepSeek-V2), eq. 9 to 19. Differs: what is kept for later positions are the
keys and values of all heads, not the latent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.norms import norm_for
from conformkit.reference.sizes import evaluate

__all__ = ["add_latents", "latent_heads"]

Attention = Any
"""A MultiHeadAttention: its module reads this one."""
Turn = Callable[[Tensor], Tensor]
"""Rotates rows (B, h, t, r), each by its position."""


def add_latents(attention: Attention) -> int:
    """Give attention its projections to latents, and from them to heads; return the width of a head's values."""
    variant, heads, own = attention.variant, attention.num_heads, attention.head_width
    sizes = {"d_model": attention.d_model, "num_heads": heads, "head_width": own}
    latent, given = evaluate(variant.latent, **sizes), evaluate(variant.value_width, **sizes)
    read = attention.d_model
    if variant.query_latent != "0":
        read = evaluate(variant.query_latent, **sizes)
        attention.q_latent = nn.Linear(attention.d_model, read, bias=False)
        attention.q_latent_norm = norm_for(read, variant)
    attention.q = nn.Linear(read, heads * own, bias=False)
    attention.kv_latent = nn.Linear(attention.d_model, latent, bias=False)
    attention.kv_latent_norm = norm_for(latent, variant)
    attention.k = nn.Linear(latent, heads * own, bias=False)
    attention.v = nn.Linear(latent, heads * given, bias=False)
    if variant.positions == "rotary":
        turned = evaluate(variant.rotary_width, **sizes)
        attention.q_rotary = nn.Linear(read, heads * turned, bias=False)
        attention.k_rotary = nn.Linear(attention.d_model, turned, bias=False)
    return given


def latent_heads(attention: Attention, x: Tensor, turn: Turn) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values of rows; `turn` rotates what rotates.

    Shapes: x (B, t, D) → (B, H, t, d + r), (B, H, t, d + r), (B, H, t, dv)
    """
    heads, variant = attention.num_heads, attention.variant
    read = x
    if variant.query_latent != "0":
        read = attention.q_latent_norm(attention.q_latent(x))  # (B, t, c')
    latent = attention.kv_latent_norm(attention.kv_latent(x))  # (B, t, c)
    q = _split(attention.q(read), heads)  # (B, H, t, d)
    k = _split(attention.k(latent), heads)  # (B, H, t, d)
    v = _split(attention.v(latent), heads)  # (B, H, t, dv)
    if variant.positions == "rotary":
        turned = turn(_split(attention.q_rotary(read), heads))  # (B, H, t, r)
        shared = turn(_split(attention.k_rotary(x), 1))  # (B, 1, t, r)
        q = torch.cat([q, turned], dim=-1)  # (B, H, t, d + r)
        k = torch.cat([k, shared.expand_as(turned)], dim=-1)  # (B, H, t, d + r)
    return q, k, v


def _split(rows: Tensor, heads: int) -> Tensor:
    """Give each head its consecutive share of the features: (B, t, h·w) → (B, h, t, w)."""
    return rows.reshape(*rows.shape[:-1], heads, -1).transpose(1, 2)
