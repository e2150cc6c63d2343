"""The embeddings of BERT: Protocol and oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, normalize
from conformkit.spec.positional_encoding import first_position, positional_encoding
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["BertEmbeddings", "BertEmbeddingsConstructor", "BertEmbeddingsModule", "bert_embeddings"]


@runtime_checkable
class BertEmbeddings(Protocol[ArrayT]):
    """Add the learned rows of each id, its segment and its position, then normalize.

    Construct: (vocab_size, d_model, max_len, num_segments=2, dropout=0.0, pad_id=0).
    Shapes:    int64 ids (B, T), segments (B, T) → (B, T, d_model), T at most max_len.
    Segments:  0 … num_segments - 1; without them, every id belongs to segment 0.
    Source:    Devlin et al. 2019, figure 2, and the code published with it.
    """

    def __call__(self, ids: ArrayT, /, segments: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class BertEmbeddingsModule(BertEmbeddings[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, ids: ArrayT, /, segments: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class BertEmbeddingsConstructor(Protocol[Built_co]):
    """The class BertEmbeddings, or a function that builds one."""

    def __call__(
        self, vocab_size: int, d_model: int, max_len: int, num_segments: int = 2, dropout: float = 0.0, pad_id: int = 0,
    ) -> Built_co: ...  # fmt: skip


def bert_embeddings(
    weights: Weights, ids: Array, segments: Array | None, sizes: Mapping[str, Any], variant: Variant
) -> Array:
    """Return z = N(E[ids] + S[segments] + P), (B, T, D), of ids and segments (B, T)."""
    x = np.asarray(weights["embedding.weight"], np.float64)[ids]  # (B, T, D)
    if variant.embedding_scale:
        x = x * math.sqrt(x.shape[-1])
    if variant.segments:
        x = x + weights["segments.weight"][np.zeros_like(ids) if segments is None else segments]
    x = positional_encoding(weights, x, variant=variant, first=first_position(variant, sizes))
    return normalize(weights, "embedding_norm", x, variant) if variant.embedding_norm else x
