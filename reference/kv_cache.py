"""Keys and values of earlier positions, kept, so that a new position costs one row instead of all of them.

    K ← [K; x W_Kᵀ]        V ← [V; x W_Vᵀ]        y = Attention(x W_Qᵀ, K, V)        x ∈ ℝ^(n×D) the new positions

The result is what recomputing everything gives: a key and a value depend on their own position and earlier ones only.
2 · B · Hkv · T · dh numbers a layer are kept. Once the text is longer than block_size there is nothing to keep: the
context is cropped, every position in it moves, and everything is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.errors import ShapeError
from conformkit.reference.generation import _check_options, _evaluating, next_ids
from conformkit.reference.language_model import LanguageModel
from conformkit.reference.latent_attention import latent_heads
from conformkit.reference.linear_attention import linear_attention, linear_heads
from conformkit.reference.masks import causal_mask, combine_masks
from conformkit.reference.output_gates import gated
from conformkit.reference.penalties import NONE, Penalties
from conformkit.reference.placements import arranged
from conformkit.reference.rotary import rotate
from conformkit.reference.scores import capped, shaped_attention, unscaled_queries, variant_mask

if TYPE_CHECKING:
    from conformkit.reference.block import TransformerBlock
    from conformkit.reference.multi_head_attention import MultiHeadAttention

__all__ = ["KVCache", "LayerCache", "cached_logits", "continue_ids", "project"]


class LayerCache:
    """The keys and values of one layer: (B, Hkv, n, dh) each, keys after rotation; None before the first position."""

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """How many positions are kept."""
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append new positions to the earlier ones, and return all of them: (B, Hkv, t, dh) → (B, Hkv, n + t, dh)."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v


class KVCache:
    """What a model remembers of one batch of texts: a cache for each of its layers, empty at first."""

    def __init__(self, num_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(num_layers)]
        self.length = 0


def cached_logits(model: LanguageModel, ids: Tensor, cache: KVCache) -> Tensor:
    """Compute the logits of the next positions of a text whose earlier ones are in the cache, and keep the new ones.

    Shapes: ids (B, t) → logits (B, t, V); the cache grows by t
    Raises: ShapeError where the text grows beyond block_size; whatever else the model refuses.
    """
    model.check_ids(ids)
    start = cache.length
    if start + ids.shape[1] > model.block_size:
        raise ShapeError("the length of the text", start + ids.shape[1], f"at most block_size = {model.block_size}")
    x = model.embedding(ids.long()) * model.scale  # (B, t, D)
    x = _from_position(start, model.positions, x)
    if model.embedding_norm is not None:
        x = model.embedding_norm(x)
    for block, layer in zip(model.blocks, cache.layers, strict=True):
        x = _block(block, x, layer)  # type: ignore[arg-type]
    if model.norm is not None:
        x = model.norm(x)
    cache.length = start + ids.shape[1]
    logits: Tensor = model.head(x)  # (B, t, V)
    return capped(logits, model.logit_cap)


def project(attention: MultiHeadAttention, x: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values of rows that begin at position `start`, rotated where the variant rotates.

    Shapes: x (B, t, D) → (B, H, t, dh), (B, Hkv, t, dh), (B, Hkv, t, dh)
    """
    if attention.variant.has_latent:
        return latent_heads(
            attention, x, lambda part: _from_position(start, lambda r: rotate(r, attention.variant), part)
        )
    q, k, v = (
        part.unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, t, h·dh) → (B, h, t, dh)
        for part in (attention.q(x), attention.k(x), attention.v(x))
    )
    variant = attention.variant
    if variant.qk_norm != "none":
        q, k = attention.normalized(q, k)
    if variant.positions == "rotary":
        q, k = (_from_position(start, lambda rows: rotate(rows, variant), part) for part in (q, k))
    return q, k, v


def _block(block: TransformerBlock, x: Tensor, layer: LayerCache) -> Tensor:
    if block.placement not in {"pre", "post"}:
        return arranged(block, x, lambda z: _attend(block.attention, z, layer))
    if block.pre:
        x = x + _attend(block.attention, block.norm1(x), layer)
        x = x + block.feed_forward(block.norm2(x))
    else:
        x = block.norm1(x + _attend(block.attention, x, layer))
        x = block.norm2(x + block.feed_forward(x))
    return x


def _attend(attention: MultiHeadAttention, x: Tensor, layer: LayerCache) -> Tensor:
    """Let new positions look at those kept and at each other: (B, t, D) → (B, t, D)."""
    q, k, v = project(attention, x, layer.length)
    k, v = layer.append(k, v)  # (B, Hkv, n + t, dh) each
    served = attention.num_heads // attention.kv_heads
    k, v = k.repeat_interleave(served, dim=1), v.repeat_interleave(served, dim=1)  # (B, H, n + t, dh) each
    q = unscaled_queries(q, attention.variant)  # (B, H, t, dh)
    if attention.kernel is linear_heads:
        sums = linear_attention(q, k, v, causal=True).transpose(1, 2).flatten(2)  # (B, t, H·dh)
        return _projected(attention, x, sums)
    mask = causal_mask(q.shape[2], k.shape[2], device=x.device)  # (t, n + t): the queries are the last positions
    if attention.variant.window or attention.variant.positions in {"alibi", "relative"}:
        mask = _with_variant(mask, attention)
    if attention.variant.score_cap or attention.sinks is not None:
        heads = shaped_attention(q, k, v, mask, attention.variant.score_cap, attention.sink_logits())  # (B, H, t, dh)
        mixed = heads.transpose(1, 2).flatten(2)  # (B, t, H·dh)
        return _projected(attention, x, mixed)
    y = scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)  # (B, t, H·dh)
    return _projected(attention, x, y)


def _projected(attention: MultiHeadAttention, x: Tensor, rows: Tensor) -> Tensor:
    """Return what the layer gives for its heads' rows: (B, t, D), (B, t, H·dh) → (B, t, D)."""
    if attention.output_gate is not None:
        rows = gated(rows, attention.output_gate(x))  # (B, t, H·dh)
    return rows if attention.out is None else attention.out(rows)


def _with_variant(mask: Tensor, attention: MultiHeadAttention) -> Tensor:
    """Add what a variant hides, and adds to scores, to a causal mask: (t, n + t) → (t, n + t) or (H, t, n + t)."""
    queries, keys = mask.shape
    own = variant_mask(queries, keys, attention.num_heads, attention.variant, causal=True, device=mask.device)
    combined = combine_masks(mask, own)
    if attention.relative is not None:
        combined = combine_masks(combined, attention.bias(queries, keys))
    assert combined is not None
    return combined


def _from_position(start: int, transform: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply what depends on the position to rows that begin at `start`: zeros stand in for the rows before.

    Shapes: x (…, t, w) → (…, t, w)
    """
    before = x.new_zeros(*x.shape[:-2], start, x.shape[-1])  # (…, start, w)
    return transform(torch.cat([before, x], dim=-2))[..., start:, :]


@torch.no_grad()
def continue_ids(
    model: LanguageModel,
    idx: Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos_id: int | None = None,
    *,
    use_cache: bool = True,
    repetition_penalty: float = 1.0,
    penalties: Penalties = NONE,
) -> Tensor:
    """Continue each row as `generate` does, with the cache if wanted, and until the row has drawn `eos_id`.

    A row that has ended is filled with `eos_id` while others go on; when all have, no more is added. An `eos_id` in the
    prompt ends nothing. `repetition_penalty` above 1 makes ids of the text so far, the prompt included, less probable;
    `penalties` are that and more.

    Shapes: idx (B, T), T at least 1 → (B, T + n), n at most max_new_tokens, of the same dtype
    Raises: as `generate`.
    """
    _check_options(max_new_tokens, temperature, top_k, top_p)
    if repetition_penalty != 1.0:
        penalties = replace(penalties, repetition=repetition_penalty)
    model.check_ids(idx)
    if idx.shape[1] == 0:
        raise ShapeError("the length of the prompt", 0, "at least 1")
    ids, cache = idx.clone(), KVCache(len(model.blocks))
    ended = torch.zeros(len(ids), 1, dtype=torch.bool, device=ids.device)  # (B, 1)
    with _evaluating(model):
        for _ in range(max_new_tokens):
            if use_cache and ids.shape[1] <= model.block_size:
                logits = cached_logits(model, ids[:, cache.length :], cache)[:, -1]  # (B, V)
            else:
                logits = model(ids[:, -model.block_size :])[:, -1]  # (B, V)
            if penalties != NONE:
                logits = penalties.applied(logits, ids, idx.shape[1], temperature)  # (B, V)
            new = next_ids(logits, temperature, top_k, top_p)  # (B, 1)
            if eos_id is not None:
                new = new.masked_fill(ended, eos_id)
                ended = ended | (new == eos_id)
            ids = torch.cat([ids, new.to(ids.dtype)], dim=1)  # (B, T + 1)
            if ended.all():
                break
    return ids
