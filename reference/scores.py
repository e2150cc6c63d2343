"""What modern variants do to the scores of self-attention: caps, windows, linear biases (ALiBi).

    S' = c tanh(S / c)                  c the cap, before any mask
    M[t, j] = (t - j < W)               W the window: the last W keys, the query's own among them
    B[h, t, j] = -m_h |t - j|           m_h = 2^(-8(h+1)/H) for H a power of 2, h ∈ {0, …, H - 1}

Caps: Riviere et al. 2024, §2. Windows: Beltagy et al. 2020, §3; Jiang et al. 2023, §2. ALiBi: Press et al. 2022, §3.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conformkit.reference.attention import attention_weights
from conformkit.reference.masks import combine_masks, mask_scores
from conformkit.spec.variants import Variant

__all__ = ["alibi_slopes", "capped", "capped_attention", "variant_mask"]


def capped(x: Tensor, cap: float) -> Tensor:
    """Squash to within ±cap, smoothly and in order; unchanged where the cap is 0."""
    return cap * torch.tanh(x / cap) if cap else x


def capped_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, cap: float) -> Tensor:
    """Attend with capped scores; what the mask hides stays hidden, because it is hidden after the cap.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv), mask broadcastable to (…, Tq, Tk) → (…, Tq, dv)
    Source: Riviere et al. 2024, §2.
    """
    scores = capped((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1), cap)  # (…, Tq, Tk)
    if mask is not None:
        scores = mask_scores(scores, mask)
    return attention_weights(scores) @ v  # (…, Tq, dv)


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
