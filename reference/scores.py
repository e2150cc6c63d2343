"""What modern variants do to the scores of self-attention: caps, windows, linear biases (ALiBi).

    S' = c tanh(S / c)                  c the cap, before any mask
    M[t, j] = (t - j < W)               W the window: the last W keys, the query's own among them
    B[h, t, j] = -m_h |t - j|           m_h = 2^(-8(h+1)/H) for H a power of 2, h ∈ {0, …, H - 1}
    A = softmax([S, σ_h])[…, :Tk]       σ_h the sink of head h: one more score, of a key without a value

Caps: Riviere et al. 2024, §2. Windows: Beltagy et al. 2020, §3; Jiang et al. 2023, §2. ALiBi: Press et al. 2022, §3.
Sinks: gpt-oss, sdpa; Xiao et al. 2024, §3.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conformkit.reference.attention import attention_weights
from conformkit.reference.masks import combine_masks, mask_scores
from conformkit.spec.variants import Variant

__all__ = ["alibi_slopes", "capped", "shaped_attention", "shaped_weights", "unscaled_queries", "variant_mask"]


def unscaled_queries(q: Tensor, variant: Variant) -> Tensor:
    """Return queries whose dot products, divided by √dk, are the variant's scores: T5's are not divided.

    Shapes: (…, T, dk) → (…, T, dk)
    Source: Raffel et al. 2020, §2.1, code.
    """
    return q if variant.score_scale else q * math.sqrt(q.shape[-1])


def capped(x: Tensor, cap: float) -> Tensor:
    """Squash to within ±cap, smoothly and in order; unchanged where the cap is 0."""
    return cap * torch.tanh(x / cap) if cap else x


def shaped_weights(q: Tensor, k: Tensor, mask: Tensor | None, cap: float, sinks: Tensor | None) -> Tensor:
    """Return the weights of capped scores, or of scores with a sink; what the mask hides is hidden after the cap.

    Shapes: q (…, H, Tq, dk), k (…, H, Tk, dk), mask broadcastable to (…, Tq, Tk), sinks (H,) → (…, H, Tq, Tk)
    Source: Riviere et al. 2024, §2; gpt-oss, sdpa.
    """
    scores = capped((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1), cap)  # (…, H, Tq, Tk)
    if mask is not None:
        scores = mask_scores(scores, mask)
    if sinks is None:
        return attention_weights(scores)
    further = sinks[:, None, None].expand(*scores.shape[:-1], 1)  # (…, H, Tq, 1)
    return attention_weights(torch.cat([scores, further], dim=-1))[..., :-1]


def shaped_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, cap: float, sinks: Tensor | None = None
) -> Tensor:
    """Attend with capped scores, or with a sink.

    Shapes: as `shaped_weights`, v (…, H, Tk, dv) → (…, H, Tq, dv)
    """
    return shaped_weights(q, k, mask, cap, sinks) @ v


def variant_mask(
    queries: int, keys: int, heads: int, variant: Variant, *, causal: bool, device: torch.device
) -> Tensor | None:
    """Return what a variant hides besides later keys, and what it subtracts; None where it does neither.

    Shapes: → boolean (Tq, Tk), or float64 (H, Tq, Tk) to be added; the queries are the last of the Tk positions.
    """
    if not variant.window and variant.positions != "alibi":
        return None
    times = torch.arange(keys, device=device)  # (Tk,)
    distance = times[keys - queries :, None] - times  # (Tq, Tk), of the query behind the key
    near = distance < variant.window if causal and variant.window else None
    if variant.positions != "alibi":
        return near
    slopes = alibi_slopes(heads, variant).to(device)  # (H,)
    return combine_masks(-slopes[:, None, None] * distance.abs(), near)


def alibi_slopes(heads: int, variant: Variant) -> Tensor:
    """Return how much the scores of each head fall with each position of distance.

    Shapes: → (H,), float64 on the CPU
    Source: Press et al. 2022, §3; for other numbers of heads than powers of 2, the code published with it: the slopes
            of the power of 2 below, then every second one of the power above.
    """
    below = 2 ** math.floor(math.log2(heads))
    if variant.alibi_slopes == "geometric":
        below = heads
    slopes = _series(below)  # (below,)
    if below < heads:
        slopes = torch.cat([slopes, _series(2 * below)[::2][: heads - below]])  # (H,)
    return slopes


def _series(heads: int) -> Tensor:
    """Return 2^(-8/H), 2^(-16/H), …, 2^(-8): (H,)."""
    return torch.pow(2.0, -8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
