"""BERT with its pretraining heads: Protocol and oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.bert_model import bert_model, pool
from conformkit.spec.layers import Weights, activate, linear, normalize
from conformkit.spec.loss import log_softmax
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = [
    "BertForPreTraining", "BertForPreTrainingConstructor", "BertForPreTrainingModule", "masked_language",
    "next_sentence",
]  # fmt: skip


@runtime_checkable
class BertForPreTraining(Protocol[ArrayT]):
    """Guess hidden ids, and whether the second segment follows the first one.

    Construct: (vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments=2, dropout=0.0, pad_id=0).
    Shapes:    int64 ids (B, T), segments (B, T) → logits (B, T, vocab_size) and those of the next sentence (B, 2), or
               the first ones alone without that head; T at most max_len.
    Mask:      as BertModel.
    Source:    Devlin et al. 2019, §3.1, and the code published with it.
    """

    def __call__(
        self, ids: ArrayT, /, segments: ArrayT | None = None, mask: ArrayT | None = None
    ) -> tuple[ArrayT, ArrayT] | ArrayT: ...


@runtime_checkable
class BertForPreTrainingModule(BertForPreTraining[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(
        self, ids: ArrayT, /, segments: ArrayT | None = None, mask: ArrayT | None = None
    ) -> tuple[ArrayT, ArrayT] | ArrayT: ...


@runtime_checkable
class BertForPreTrainingConstructor(Protocol[Built_co]):
    """The class BertForPreTraining, or a function that builds one."""

    def __call__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_ff: int, max_len: int,
        num_segments: int = 2, dropout: float = 0.0, pad_id: int = 0,
    ) -> Built_co: ...  # fmt: skip


def masked_language(
    weights: Weights, ids: Array, segments: Array | None, mask: Array | None, sizes: Mapping[str, Any], variant: Variant
) -> Array:
    """Return the logits (B, T, V) of ids (B, T), or their log-softmax: transform, norm, the shared matrix, a bias."""
    x = bert_model(weights, ids, segments, mask, sizes, variant)
    if variant.head_transform:
        x = normalize(weights, "transform_norm", activate(linear(weights, "transform", x), variant), variant)
    logits = x @ weights["embedding.weight" if variant.tied else "head.weight"].T  # (B, T, V)
    logits = np.asarray(logits + weights["head.bias"] if variant.head_bias else logits)
    return log_softmax(logits) if variant.log_probabilities else logits


def next_sentence(
    weights: Weights, ids: Array, segments: Array | None, mask: Array | None, sizes: Mapping[str, Any], variant: Variant
) -> Array:
    """Return the logits (B, 2) of whether the second segment follows: a linear map of the pooled row, or the first."""
    hidden = bert_model(weights, ids, segments, mask, sizes, variant)  # (B, T, D)
    logits = linear(weights, "next_sentence", pool(weights, hidden) if variant.pooler else hidden[:, 0])
    return log_softmax(logits) if variant.log_probabilities else logits
