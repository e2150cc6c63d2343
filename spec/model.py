"""The tiny decoder-only language model: Protocol and oracle."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.block import transformer_block
from conformkit.spec.layers import Weights, normalize, under
from conformkit.spec.loss import log_softmax
from conformkit.spec.positional_encoding import first_position, positional_encoding
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.relative_positions import shared_table
from conformkit.spec.scores import capped
from conformkit.spec.variants import Variant

__all__ = ["TinyTransformerLM", "TinyTransformerLMConstructor", "TinyTransformerLMModule", "tiny_transformer_lm"]


@runtime_checkable
class TinyTransformerLM(Protocol[ArrayT]):
    """Predict each next token from the tokens before it.

    Construct: (vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0).
    Shapes:    int64 ids (B, T) → logits (B, T, vocab_size), T at most block_size.
    Raises:    anything, when an id is vocab_size or more; should raise for one below 0, and when T is larger than
               block_size, which may otherwise be read as a whole.
    Source:    Radford et al. 2018, §3.1.
    """

    def __call__(self, idx: ArrayT, /) -> ArrayT: ...

    def generate(
        self,
        idx: ArrayT,
        /,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> ArrayT: ...


@runtime_checkable
class TinyTransformerLMModule(TinyTransformerLM[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, idx: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class TinyTransformerLMConstructor(Protocol[Built_co]):
    """The class TinyTransformerLM, or a function that builds one."""

    def __call__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int,
        d_ff: int, block_size: int, dropout: float = 0.0,
    ) -> Built_co: ...  # fmt: skip


def tiny_transformer_lm(
    weights: Weights, ids: Array, *, num_heads: int, kv_heads: int, num_layers: int, variant: Variant
) -> Array:
    """Return the logits (B, T, V) of ids (B, T), or their log-softmax: embed, positions, blocks, final norm, head."""
    x = np.asanyarray(weights["embedding.weight"], np.float64)[ids]  # (B, T, D)
    if variant.embedding_scale:
        x = x * math.sqrt(x.shape[-1])
    x = positional_encoding(weights, x, variant=variant, first=first_position(variant, {}))
    if variant.embedding_norm:
        x = normalize(weights, "embedding_norm", x, variant)
    table = shared_table(weights, "attention", variant)
    for layer in range(num_layers):
        x = transformer_block(
            {**under(weights, f"blocks.{layer}"), **table},
            x,
            num_heads=num_heads,
            kv_heads=kv_heads,
            causal=True,
            variant=variant.of_layer(layer),
            layers=num_layers,
        )
    if variant.final_norm:
        x = normalize(weights, "norm", x, variant)
    if variant.tied and variant.tied_scale:
        x = x / math.sqrt(x.shape[-1])
    logits = x @ weights["embedding.weight" if variant.tied else "head.weight"].T  # (B, T, V)
    logits = np.asanyarray(logits + weights["head.bias"] if variant.head_bias else logits)
    logits = capped(logits, variant.logit_cap)
    return log_softmax(logits) if variant.log_probabilities else logits
