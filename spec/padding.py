"""Mask builders of an encoder-decoder: Protocols and oracles. True = may attend."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask
from conformkit.spec.protocols import ArrayT, ArrayT_co, Named

__all__ = ["CreateCausalMask", "CreateMasks", "CreatePaddingMask", "padding_mask", "target_mask"]


@runtime_checkable
class CreatePaddingMask(Named, Protocol[ArrayT]):
    """Return which keys are not padding: True = may attend.

    Shapes: ids (B, T) → (B, 1, 1, T), which should be boolean
    Source: Annotated Transformer, Batches and Masking.
    """

    def __call__(self, ids: ArrayT, pad_id: int = 0) -> ArrayT: ...


@runtime_checkable
class CreateCausalMask(Named, Protocol[ArrayT_co]):
    """Let each position see itself and what came before: True = may attend.

    Shapes: → boolean (size, size)
    Source: Annotated Transformer, Batches and Masking.
    """

    def __call__(self, size: int) -> ArrayT_co: ...


@runtime_checkable
class CreateMasks(Named, Protocol[ArrayT]):
    """Return the mask of the source, which is also the memory's, and that of the target: True = may attend.

    Shapes: src (B, S), tgt (B, T), shifted already → boolean (B, 1, 1, S), (B, 1, T, T)
    Source: Annotated Transformer, Batches and Masking.
    """

    def __call__(
        self, src: ArrayT, tgt: ArrayT, pad_id: int = 0
    ) -> tuple[ArrayT, ArrayT] | tuple[ArrayT, ArrayT, ArrayT]: ...


def padding_mask(ids: Array, pad_id: int) -> Array:
    """Return the mask (B, 1, 1, T) of ids (B, T) that hides padding."""
    return np.asarray(ids != pad_id)[:, None, None, :]


def target_mask(ids: Array, pad_id: int) -> Array:
    """Return the mask (B, 1, T, T) of ids (B, T) that hides padding and later positions."""
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
