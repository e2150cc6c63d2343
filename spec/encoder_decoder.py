"""The encoder-decoder transformer: Protocol and oracle."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.decoder import decoder
from conformkit.spec.encoder import encoder
from conformkit.spec.layers import Weights, normalize, under
from conformkit.spec.loss import log_softmax
from conformkit.spec.masks import causal_mask
from conformkit.spec.padding import padding_mask, target_mask
from conformkit.spec.positional_encoding import first_position, positional_encoding
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["Transformer", "TransformerConstructor", "TransformerModule", "decode", "encode", "transformer"]


@runtime_checkable
class Transformer(Protocol[ArrayT]):
    """Predict each next target id from a source and the target so far.

    Construct: (src_vocab_size, tgt_vocab_size, d_model, num_heads, num_encoder_layers, num_decoder_layers, d_ff,
               max_len=5000, dropout=0.0, pad_id=0).
    Shapes:    int64 src (B, S), tgt (B, T) → logits (B, T, tgt_vocab_size), S and T at most max_len.
    Masks:     boolean, True = may attend; src_mask (B, 1, 1, S), which hides the source's padding in the encoder and in
               the memory; tgt_mask (B, 1, T, T), causality and the target's padding. Without it, the
               target should be causal all the same.
    Source:    Vaswani et al. 2017, figure 1.
    """

    def __call__(
        self, src: ArrayT, tgt: ArrayT, /, src_mask: ArrayT | None = None, tgt_mask: ArrayT | None = None
    ) -> ArrayT: ...

    def encode(self, src: ArrayT, /, src_mask: ArrayT | None = None) -> ArrayT:
        """Return the memory (B, S, d_model) of a source."""
        ...

    def decode(
        self, tgt: ArrayT, memory: ArrayT, /, tgt_mask: ArrayT | None = None, memory_mask: ArrayT | None = None
    ) -> ArrayT:
        """Return the logits (B, T, tgt_vocab_size) of a target, given the memory of its source."""
        ...

    def generate(
        self, src: ArrayT, /, max_new_tokens: int, bos_id: int, eos_id: int | None = None,
        src_mask: ArrayT | None = None, temperature: float = 0.0, top_k: int | None = None, top_p: float | None = None,
        use_cache: bool = False,
    ) -> ArrayT:  # fmt: skip
        """Return a target (B, n) for each source; temperature 0 is greedy, ended rows are filled up."""
        ...

    def beam_search(
        self, src: ArrayT, /, max_new_tokens: int, bos_id: int, beam_width: int, length_penalty: float = 0.0,
        eos_id: int | None = None, src_mask: ArrayT | None = None,
    ) -> tuple[ArrayT, ArrayT]:  # fmt: skip
        """Return the best targets (B, W, n) of each source, and their scores (B, W)."""
        ...


@runtime_checkable
class TransformerModule(Transformer[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(
        self, src: ArrayT, tgt: ArrayT, /, src_mask: ArrayT | None = None, tgt_mask: ArrayT | None = None
    ) -> ArrayT: ...


@runtime_checkable
class TransformerConstructor(Protocol[Built_co]):
    """The class Transformer, or a function that builds one."""

    def __call__(
        self, src_vocab_size: int, tgt_vocab_size: int, d_model: int, num_heads: int, num_encoder_layers: int,
        num_decoder_layers: int, d_ff: int, max_len: int, dropout: float = 0.0, pad_id: int = 0,
    ) -> Built_co: ...  # fmt: skip


def encode(weights: Weights, src: Array, src_mask: Array | None, sizes: Any, variant: Variant) -> Array:
    """Return the memory (B, S, D) of source ids (B, S); without a mask, padding is hidden."""
    mask = padding_mask(src, sizes["pad_id"]) if src_mask is None else src_mask
    return encoder(
        under(weights, "encoder"), _embedded(weights, "src", src, sizes, variant), mask,
        num_layers=sizes["num_encoder_layers"], num_heads=sizes["num_heads"], kv_heads=sizes["kv_heads"],
        variant=variant,
    )  # fmt: skip


def decode(
    weights: Weights, tgt: Array, memory: Array, tgt_mask: Array | None, memory_mask: Array | None, sizes: Any,
    variant: Variant,
) -> Array:  # fmt: skip
    """Return the logits (B, T, V) of target ids (B, T), or their log-softmax, given the memory (B, S, D)."""
    mask = target_mask(tgt, sizes["pad_id"]) if tgt_mask is None else tgt_mask & causal_mask(tgt.shape[1])
    features = decoder(
        under(weights, "decoder"), _embedded(weights, "tgt", tgt, sizes, variant), memory, mask, memory_mask,
        num_layers=sizes["num_decoder_layers"], num_heads=sizes["num_heads"], kv_heads=sizes["kv_heads"],
        variant=variant,
    )  # fmt: skip
    if variant.tied and variant.tied_scale:
        features = features / math.sqrt(features.shape[-1])
    head = weights[f"{_table(weights, 'tgt')}.weight" if variant.tied else "head.weight"]
    logits = features @ head.T  # (B, T, V)
    logits = np.asarray(logits + weights["head.bias"] if variant.head_bias else logits)
    return log_softmax(logits) if variant.log_probabilities else logits


def transformer(
    weights: Weights, src: Array, tgt: Array, src_mask: Array | None, tgt_mask: Array | None, sizes: Any,
    variant: Variant,
) -> Array:  # fmt: skip
    """Return the logits (B, T, V) of a source (B, S) and a target that was shifted right (B, T)."""
    memory = encode(weights, src, src_mask, sizes, variant)
    memory_mask = padding_mask(src, sizes["pad_id"]) if src_mask is None else src_mask
    return decode(weights, tgt, memory, tgt_mask, memory_mask, sizes, variant)


def _table(weights: Weights, side: str, kind: str = "embedding") -> str:
    """Return the table that a side reads: the source's if both share it."""
    return f"tgt_{kind}" if side == "tgt" and f"tgt_{kind}.weight" in weights else f"src_{kind}"


def _embedded(weights: Weights, side: str, ids: Array, sizes: Any, variant: Variant) -> Array:
    x = np.asarray(weights[f"{_table(weights, side)}.weight"], np.float64)[ids]  # (B, T, D)
    if variant.embedding_scale:
        x = x * math.sqrt(x.shape[-1])
    learned = variant.positions == "learned"
    table = {"positions.weight": weights[f"{_table(weights, side, 'positions')}.weight"]} if learned else {}
    x = positional_encoding(table, x, variant=variant, first=first_position(variant, sizes))
    return normalize(weights, f"{side}_embedding_norm", x, variant) if variant.embedding_norm else x
