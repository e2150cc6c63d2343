"""Attention in blocks of queries: the same result, without ever holding all scores.

    Y[a … b] = softmax(Q[a … b] Kᵀ / √dk + M[a … b]) V        for one block of c queries after the other

A row of scores needs all its keys and nothing of other rows, so no block depends on another. Scores take B·H·c·Tk
numbers in place of B·H·Tq·Tk; the backward pass computes those of each block again. Keys that a whole block can't see,
later ones and those before its window, are not even multiplied: with a window W the cost grows as T·(W + c).

Rabe & Staats 2021, §2. Differs: blocks of queries only, so the softmax stays the usual one.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.dropout import attention_with_dropout
from conformkit.reference.masks import causal_mask, combine_masks
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.recomputation import recomputed
from conformkit.reference.sizes import check_at_least

__all__ = ["chunked_attention", "place_chunks"]


def chunked_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, size: int, causal: bool = False, window: int = 0,
    rate: float = 0.0,
) -> Tensor:  # fmt: skip
    """Mix value rows as `scaled_dot_product_attention` does, `size` queries at a time.

    `causal` hides later keys, the queries being the last positions; `window` then hides keys that far behind and
    further; `rate` drops attention weights.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv), mask broadcastable to (…, Tq, Tk) → (…, Tq, dv)
    Raises: SizeError for a size below 1; otherwise as `scaled_dot_product_attention`.
    """
    check_at_least(1, size=size)
    attend = partial(attention_with_dropout, rate=rate) if rate else scaled_dot_product_attention
    queries, keys = q.shape[-2], k.shape[-2]
    blocks = []
    for start in range(0, max(queries, 1), size):
        stop = min(start + size, queries)
        first, last = 0, keys
        if causal:
            last = stop + keys - queries  # the first key that the block's last query does not see
            first = max(last - (stop - start) - window + 1, 0) if window else 0
        own = _part(mask, slice(start, stop), slice(first, last))
        if causal:
            own = combine_masks(own, _near(stop - start, last - first, window, q.device))  # (…, c, keys)
        block = recomputed(attend, q[..., start:stop, :], k[..., first:last, :], v[..., first:last, :], own)
        blocks.append(block)  # (…, c, dv)
    return torch.cat(blocks, dim=-2)


def place_chunks(model: nn.Module, size: int) -> None:
    """Let all attention of a model work in blocks of so many queries. Raises: SizeError for a size below 1."""
    check_at_least(1, size=size)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.kernel = partial(_heads_in_blocks, size=size)


def _heads_in_blocks(
    attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, size: int
) -> Tensor:
    window = attention.variant.window if attention.causal else 0
    rate = attention.weight_dropout if attention.training else 0.0
    return chunked_attention(q, k, v, mask, size=size, causal=attention.causal, window=window, rate=rate)


def _near(queries: int, keys: int, window: int, device: torch.device) -> Tensor:
    """Show each query, the last of the keys' positions, itself and the keys before, as far as the window reaches."""
    seen = causal_mask(queries, keys, device=device)  # (c, keys)
    return seen.triu(keys - queries - window + 1) if window else seen


def _part(mask: Tensor | None, rows: slice, columns: slice) -> Tensor | None:
    """Cut a block out of a mask; an axis of extent 1 stands for all rows or columns."""
    if mask is None:
        return None
    if mask.ndim > 1 and mask.shape[-2] > 1:
        mask = mask[..., rows, :]
    return mask[..., columns] if mask.shape[-1] > 1 else mask
