"""Relative positions that are learned, as in T5: each head adds a number to its scores by the bucket of the distance.

    s[h, t, j] = q·k / √dh + b[bucket(t, j), h]

    δ < n/2:  δ        δ ≥ n/2:  min(n - 1, n/2 + ⌊ln(δ / (n/2)) / ln(M / (n/2)) · n/2⌋)

n is the number of buckets for keys on one side, M the distance from which the last one holds. Raffel et al. 2020, §2.1,
and the code published with it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from conformkit.spec.variants import Variant

__all__ = ["bucket", "relative_bias", "table_for"]


def table_for(num_heads: int, variant: Variant) -> nn.Embedding | None:
    """Return the table (buckets, H) of an attention layer; None where the variant has none."""
    return nn.Embedding(variant.relative_buckets, num_heads) if variant.positions == "relative" else None


def relative_bias(table: nn.Embedding, queries: int, keys: int, variant: Variant, *, causal: bool) -> Tensor:
    """Return what is added to the scores; the queries are the last of the positions that have keys.

    Shapes: → (H, Tq, Tk)
    """
    times = torch.arange(keys, device=table.weight.device)  # (Tk,)
    ahead = times - times[keys - queries :, None]  # (Tq, Tk), of the key before the query
    bias: Tensor = table(bucket(ahead, variant, causal=causal))  # (Tq, Tk, H)
    return bias.permute(2, 0, 1)


def bucket(ahead: Tensor, variant: Variant, *, causal: bool) -> Tensor:
    """Return the bucket of each distance of a key ahead of its query; those of later keys are in the second half.

    Shapes: (Tq, Tk) → (Tq, Tk), both of integers
    """
    side = variant.relative_buckets if causal else variant.relative_buckets // 2
    distance = (-ahead).clamp(min=0) if causal else ahead.abs()
    near = side // 2
    ratio = (distance.clamp(min=1) / near).log() / math.log(variant.relative_distance / near)
    far = (near + (ratio * (side - near)).long()).clamp(max=side - 1)
    found = torch.where(distance < near, distance, far)
    return found if causal else found + side * (ahead > 0)
