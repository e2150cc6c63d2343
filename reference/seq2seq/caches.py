"""What a decoder remembers while it writes, so that a new id costs one row instead of all of them.

    self:   K ← [K; x W_Kᵀ]   V ← [V; x W_Vᵀ]   grow by the new positions
    cross:  K = M W_Kᵀ        V = M W_Vᵀ        computed once from the memory M, and never again

The result is what `Transformer.decode` gives on the whole target: a key and a value of the target depend on their own
position and earlier ones only, those of the memory on the memory alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.errors import ShapeError
from conformkit.reference.kv_cache import LayerCache, _from_position, project
from conformkit.reference.masks import causal_mask, combine_masks
from conformkit.reference.scores import unscaled_queries

if TYPE_CHECKING:
    from conformkit.reference.multi_head_attention import MultiHeadAttention
    from conformkit.reference.seq2seq.cross_attention import CrossAttention
    from conformkit.reference.seq2seq.decoder import DecoderLayer
    from conformkit.reference.seq2seq.encoder_decoder import EncoderDecoder

__all__ = ["CrossCache", "DecoderCache", "cached_logits"]


class CrossCache:
    """The keys and values of one cross-attention, (B, Hkv, S, dh) each, for as long as the memory is the same."""

    def __init__(self, attention: CrossAttention, memory: Tensor) -> None:
        self.k = attention.k(memory).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, Hkv, S, dh)
        self.v = attention.v(memory).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, Hkv, S, dh)


class DecoderCache:
    """What is kept of one batch: for each layer a self-attention that grows and a cross-attention that does not.

    Shapes: memory (B, S, D), memory_mask (B, 1, 1, S); `real` (B, n) says which target positions are no padding
    """

    def __init__(self, model: EncoderDecoder, memory: Tensor, memory_mask: Tensor | None = None) -> None:
        layers: list[DecoderLayer] = list(model.decoder.layers)  # type: ignore[arg-type]
        self.past = [LayerCache() for _ in layers]
        self.cross = [CrossCache(layer.cross_attention, memory) for layer in layers]
        self.memory_mask = memory_mask
        self.real = torch.zeros(len(memory), 0, dtype=torch.bool, device=memory.device)  # (B, 0)

    @property
    def length(self) -> int:
        """How many target positions are kept."""
        return self.real.shape[1]

    def reorder(self, rows: Tensor) -> None:
        """Let row b go on from what row `rows[b]` has written: rows (B,), which read the same memory."""
        self.real = self.real[rows]  # (B, n)
        for past in self.past:
            if past.k is not None and past.v is not None:
                past.k = past.k[rows]  # (B, Hkv, n, dh)
                past.v = past.v[rows]  # (B, Hkv, n, dh)


def cached_logits(model: EncoderDecoder, tgt: Tensor, cache: DecoderCache) -> Tensor:
    """Compute the logits of the next target positions, given those in the cache, and keep the new ones.

    Shapes: tgt (B, t) → logits (B, t, V_tgt); the cache grows by t
    Raises: ShapeError where the target grows beyond max_len; whatever else the model refuses.
    """
    start, length = cache.length, cache.length + tgt.shape[-1]
    x = model.tgt_embedding(tgt)  # (B, t, D)
    if length > model.max_len:
        raise ShapeError("the length of the target", length, f"at most max_len = {model.max_len}")
    x = _from_position(start, model.tgt_positions, x)
    if model.tgt_embedding_norm is not None:
        x = model.tgt_embedding_norm(x)
    cache.real = torch.cat([cache.real, tgt != model.pad_id], dim=1)  # (B, n + t)
    future = causal_mask(tgt.shape[1], length, device=tgt.device)  # (t, n + t): the queries are the last positions
    tgt_mask = cache.real[:, None, None, :] & future  # (B, 1, t, n + t)
    for layer, past, cross in zip(model.decoder.layers, cache.past, cache.cross, strict=True):
        x = _layer(layer, x, past, tgt_mask, cross, cache.memory_mask)  # type: ignore[arg-type]
    if model.decoder.norm is not None:
        x = model.decoder.norm(x)
    logits: Tensor = model.head(x)  # (B, t, V_tgt)
    return logits


def _layer(
    layer: DecoderLayer, x: Tensor, past: LayerCache, tgt_mask: Tensor, cross: CrossCache, memory_mask: Tensor | None
) -> Tensor:
    if layer.pre:
        x = x + _attend_to_past(layer.self_attention, layer.norm1(x), past, tgt_mask)
        x = x + _attend_to_memory(layer.cross_attention, layer.norm2(x), cross, memory_mask)
        x = x + layer.feed_forward(layer.norm3(x))
    else:
        x = layer.norm1(x + _attend_to_past(layer.self_attention, x, past, tgt_mask))
        x = layer.norm2(x + _attend_to_memory(layer.cross_attention, x, cross, memory_mask))
        x = layer.norm3(x + layer.feed_forward(x))
    return x


def _attend_to_past(attention: MultiHeadAttention, x: Tensor, past: LayerCache, mask: Tensor) -> Tensor:
    """Let new positions look at those kept and at each other: (B, t, D) → (B, t, D)."""
    q, k, v = project(attention, x, past.length)
    k, v = past.append(k, v)  # (B, Hkv, n + t, dh) each
    return _mix(attention, q, k, v, mask)


def _attend_to_memory(attention: CrossAttention, x: Tensor, cross: CrossCache, mask: Tensor | None) -> Tensor:
    """Let new positions look at the memory: (B, t, D) → (B, t, D)."""
    q = attention.q(x).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, H, t, dh)
    return _mix(attention, q, cross.k, cross.v, mask)


def _mix(attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    served = attention.num_heads // attention.kv_heads
    k, v = k.repeat_interleave(served, dim=1), v.repeat_interleave(served, dim=1)  # (B, H, n, dh) each
    q = unscaled_queries(q, attention.variant)  # (B, H, t, dh)
    if attention.relative is not None:
        mask = combine_masks(mask, attention.bias(q.shape[2], k.shape[2]))  # (B, H, t, n)
    y = scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)  # (B, t, H·dh)
    return y if attention.out is None else attention.out(y)
