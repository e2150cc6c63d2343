"""BERT without its pretraining heads: Protocol and oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.bert_embeddings import bert_embeddings
from conformkit.spec.encoder import encoder
from conformkit.spec.layers import Weights, linear
from conformkit.spec.padding import padding_mask
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["BertModel", "BertModelConstructor", "BertModelModule", "bert_model", "pool"]


@runtime_checkable
class BertModel(Protocol[ArrayT]):
    """Read a text in both directions: a row for each id, and one for the whole text.

    Construct: (vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments=2, dropout=0.0, pad_id=0).
    Shapes:    int64 ids (B, T), segments (B, T) → hidden rows (B, T, d_model) and the pooled row (B, d_model), or the
               hidden rows alone without a pooler; T at most max_len.
    Mask:      boolean (B, 1, 1, T), which hides padding; True = may attend.
    Source:    Devlin et al. 2019, §3, and the code published with it.
    """

    def __call__(
        self, ids: ArrayT, /, segments: ArrayT | None = None, mask: ArrayT | None = None
    ) -> tuple[ArrayT, ArrayT] | ArrayT: ...


@runtime_checkable
class BertModelModule(BertModel[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(
        self, ids: ArrayT, /, segments: ArrayT | None = None, mask: ArrayT | None = None
    ) -> tuple[ArrayT, ArrayT] | ArrayT: ...


@runtime_checkable
class BertModelConstructor(Protocol[Built_co]):
    """The class BertModel, or a function that builds one."""

    def __call__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_ff: int, max_len: int,
        num_segments: int = 2, dropout: float = 0.0, pad_id: int = 0,
    ) -> Built_co: ...  # fmt: skip


def bert_model(
    weights: Weights, ids: Array, segments: Array | None, mask: Array | None, sizes: Mapping[str, Any], variant: Variant
) -> Array:
    """Return the hidden rows (B, T, D) of ids (B, T); without a mask, padding is hidden."""
    x = bert_embeddings(weights, ids, segments, sizes, variant)
    return encoder(
        weights, x, padding_mask(ids, sizes["pad_id"]) if mask is None else mask, num_layers=sizes["num_layers"],
        num_heads=sizes["num_heads"], kv_heads=sizes["kv_heads"], variant=variant,
    )  # fmt: skip


def pool(weights: Weights, hidden: Array) -> Array:
    """Return the pooled row (B, D) of hidden rows (B, T, D): tanh of a linear map of the first one."""
    return np.asarray(np.tanh(linear(weights, "pooler", hidden[:, 0])))
