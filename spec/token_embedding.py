"""Token embedding: Protocol and oracle."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["TokenEmbedding", "TokenEmbeddingConstructor", "TokenEmbeddingModule", "token_embedding"]


@runtime_checkable
class TokenEmbedding(Protocol[ArrayT]):
    """Look up a learned row for each token id, times √d_model if the variant scales embeddings.

    With a pad_id, the row of that id is zero and gets no gradient.

    Construct: (vocab_size, d_model, pad_id=None).
    Shapes:    int64 ids (B, T) → (B, T, d_model).
    Source:    Vaswani et al. 2017, §3.4.
    """

    def __call__(self, ids: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class TokenEmbeddingModule(TokenEmbedding[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, ids: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class TokenEmbeddingConstructor(Protocol[Built_co]):
    """The class TokenEmbedding, or a function that builds one."""

    def __call__(self, vocab_size: int, d_model: int, pad_id: int | None = None) -> Built_co: ...


def token_embedding(weights: Weights, ids: Array, *, variant: Variant) -> Array:
    """Return the rows (B, T, D) of ids (B, T)."""
    rows = np.asanyarray(weights["embedding.weight"], np.float64)[ids]
    return np.asanyarray(rows * math.sqrt(rows.shape[-1]) if variant.embedding_scale else rows)
