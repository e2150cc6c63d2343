"""The language model with the arguments that real ones have: masks, positions, packed texts, a cache, targets.

    logits = LM(ids | mask, places, texts, cache)        loss = cross entropy(logits, targets)

Every way gives what `TinyTransformerLM` gives for each text alone: padding does not move or touch a text, pieces of any
size add up to the whole, texts that share a row do not see each other. Targets are the ids that follow, as in nanoGPT:
nothing is shifted here.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from conformkit.reference.attention import attention_weights, scaled_dot_product_attention
from conformkit.reference.block import TransformerBlock
from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.generation import _evaluating, next_ids
from conformkit.reference.kv_cache import LayerCache
from conformkit.reference.latent_attention import latent_heads
from conformkit.reference.loss import cross_entropy
from conformkit.reference.masks import combine_masks, mask_scores
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.paths.cache import TextCache
from conformkit.reference.paths.places import checked, places_of, rotate_at, seen_by
from conformkit.reference.scores import capped, unscaled_queries, variant_mask
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["CausalLM"]


class CausalLM(TinyTransformerLM):
    """Predict the next id, whichever way a text comes in, by the kernel `sdpa` or with weights at hand (`eager`).

    Shapes: ids (B, t); attention_mask, position_ids, segment_ids (B, n + t), n the positions that `cache` keeps, but
            position_ids (B, t); targets (B, t) → logits (B, t, V), or a tuple that begins with them
    Units:  attention_mask is 0 for padding; targets of -100 do not count.
    Raises: as TinyTransformerLM; ShapeError for arguments that have another shape than the ids; ValueError for an
            unknown kernel.
    Source: calls of nanoGPT and transformers.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        block_size: int,
        dropout: float = 0.0,
        attn_implementation: str = "sdpa",
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__(vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout, variant=variant)
        if attn_implementation not in {"sdpa", "eager"}:
            raise ValueError(f"attn_implementation is {attn_implementation!r}, expected sdpa or eager")
        self.eager = attn_implementation == "eager"

    def forward(  # type: ignore[override]  # more arguments, and more results where asked for
        self,
        ids: Tensor,
        targets: Tensor | None = None,
        *,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        segment_ids: Tensor | None = None,
        cache: TextCache | None = None,
        output_attentions: bool = False,
    ) -> Tensor | tuple[Tensor, ...]:
        """Return logits (B, t, V); with targets also the loss, with `output_attentions` the weights of all layers.

        The weights are (L, B, H, t, n + t).
        """
        self.check_ids(ids)
        kept = cache.length if cache is not None else 0
        rows, length = ids.shape
        if kept + length > self.block_size:
            raise ShapeError("the length of the text", kept + length, f"at most block_size = {self.block_size}")
        mask = checked("attention_mask", attention_mask, (rows, kept + length))
        segments = checked("segment_ids", segment_ids, (rows, kept + length))
        places = checked("position_ids", position_ids, (rows, length))
        if places is None:
            places = places_of(ids, kept, mask, segments)  # (B, t)
        seen = seen_by(ids, kept, mask, segments)  # (…, t, n + t)
        x = self._embedded(ids, places)  # (B, t, D)
        weights = []
        for number, block in enumerate(self.blocks):
            layer = cache.layers[number] if cache is not None else LayerCache()
            one = cast("TransformerBlock", block)
            x, shown = _through(one, x, places, seen, layer, shown=output_attentions or self.eager)
            weights.append(shown)
        if self.norm is not None:
            x = self.norm(x)
        logits = capped(self.head(x), self.logit_cap)  # (B, t, V)
        if self.log_probabilities:
            logits = logits.log_softmax(dim=-1)
        found = [logits]
        if targets is not None:
            found.append(cross_entropy(logits, targets))
        if output_attentions:
            found.append(torch.stack([shown for shown in weights if shown is not None]))  # (L, B, H, t, n + t)
        return tuple(found) if len(found) > 1 else logits

    @torch.no_grad()
    def generate(  # type: ignore[override]  # with a mask, and without penalties
        self,
        idx: Tensor,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        *,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Continue each prompt as TinyTransformerLM does; a mask (B, T) says which ids of a padded batch are real.

        Shapes: idx (B, T) → (B, T + max_new_tokens); padding stays where it is, new ids stand behind it.
        Raises: as TinyTransformerLM; ShapeError for a mask of another shape, or a padded text longer than block_size.
        """
        mask = checked("attention_mask", attention_mask, (idx.shape[0], idx.shape[1]))
        if mask is None:
            return super().generate(idx, max_new_tokens, temperature, top_k, top_p)
        with _evaluating(self):
            return self._continued(idx, (mask != 0).long(), max_new_tokens, (temperature, top_k, top_p))

    def _continued(
        self, ids: Tensor, mask: Tensor, count: int, options: tuple[float, int | None, float | None]
    ) -> Tensor:
        """Add ids to a padded batch: ids and mask (B, T) → (B, T + count)."""
        rows = torch.arange(len(ids), device=ids.device)
        last = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)  # (B,), the last real place of each row
        for _ in range(count):
            logits = cast("Tensor", self(ids, attention_mask=mask))  # (B, t, V)
            new = next_ids(logits[rows, last], *options)  # (B, 1)
            ids = torch.cat([ids, new.to(ids.dtype)], dim=1)  # (B, t + 1)
            mask = torch.cat([mask, torch.ones_like(new)], dim=1)  # (B, t + 1)
            last = torch.full_like(last, ids.shape[1] - 1)
        return ids

    def new_cache(self) -> TextCache:
        """Return an empty cache for a batch of texts."""
        return TextCache(len(self.blocks))

    def _embedded(self, ids: Tensor, places: Tensor) -> Tensor:
        """Return embeddings with the positions of their places: (B, t) → (B, t, D)."""
        if not torch.compiler.is_compiling():  # a graph is recorded for all positions: it cannot look at some
            self._check_places(places)
        x = self.embedding(ids.long()) * self.scale  # (B, t, D)
        table = self.positions(x.new_zeros(self.block_size, x.shape[-1]))  # (block_size, D)
        x = x + table[places]
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        dropped: Tensor = self.embedding_dropout(x)
        return dropped

    def _check_places(self, places: Tensor) -> None:
        outside = places[(places < 0) | (places >= self.block_size)]  # (n,)
        if outside.numel():
            raise SizeError("a position", int(outside[0]), f"from 0 to block_size - 1 = {self.block_size - 1}")


def _through(
    block: TransformerBlock, x: Tensor, places: Tensor, seen: Tensor, layer: LayerCache, *, shown: bool
) -> tuple[Tensor, Tensor | None]:
    """Pass rows through one block: (B, t, D) → (B, t, D), and on request the weights (B, H, t, n + t)."""
    if block.pre:
        y, weights = _attend(block.attention, block.norm1(x), places, seen, layer, shown=shown)
        x = x + y
        x = x + block.feed_forward(block.norm2(x))
    else:
        y, weights = _attend(block.attention, x, places, seen, layer, shown=shown)
        x = block.norm1(x + y)
        x = block.norm2(x + block.feed_forward(x))
    return x, weights


def _attend(
    attention: MultiHeadAttention, x: Tensor, places: Tensor, seen: Tensor, layer: LayerCache, *, shown: bool
) -> tuple[Tensor, Tensor | None]:
    """Let new rows look at those kept and at each other: (B, t, D) → (B, t, D), and the weights."""
    q, k, v = _projected(attention, x, places)
    variant = attention.variant
    if variant.qk_norm != "none":
        q, k = attention.normalized(q, k)
    if variant.positions == "rotary" and not variant.has_latent:
        q = rotate_at(q, places, variant.rotary_base, variant.rotary_layout)
        k = rotate_at(k, places, variant.rotary_base, variant.rotary_layout)
    q = unscaled_queries(q, variant)  # (B, H, t, dh)
    k, v = layer.append(k, v)  # (B, Hkv, n + t, dh) each
    served = attention.num_heads // attention.kv_heads
    k, v = k.repeat_interleave(served, dim=1), v.repeat_interleave(served, dim=1)  # (B, H, n + t, dh) each
    own = variant_mask(q.shape[2], k.shape[2], attention.num_heads, variant, causal=True, device=x.device)
    mask = combine_masks(seen, own)
    assert mask is not None
    if shown or variant.score_cap:
        scores = capped((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1), variant.score_cap)  # (B, H, t, n + t)
        weights = attention_weights(mask_scores(scores, mask))
        heads = weights @ v  # (B, H, t, dh)
    else:
        heads, weights = scaled_dot_product_attention(q, k, v, mask), None
    y = heads.transpose(1, 2).flatten(2)  # (B, t, H·dh)
    if attention.out is not None:
        y = attention.out(y)
    return attention.dropout(y), weights if shown else None


def _projected(attention: MultiHeadAttention, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, (B, h, t, dh) each; from a latent they are rotated already."""
    variant = attention.variant
    if variant.has_latent:
        return latent_heads(
            attention, x, lambda rows: rotate_at(rows, places, variant.rotary_base, variant.rotary_layout)
        )
    q, k, v = (
        rows.unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, t, h·dh) → (B, h, t, dh)
        for rows in (attention.q(x), attention.k(x), attention.v(x))
    )
    return q, k, v
