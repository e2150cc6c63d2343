"""Patches of images as rows: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights
from conformkit.spec.protocols import ArrayT, Built_co

__all__ = ["PatchEmbedding", "PatchEmbeddingConstructor", "PatchEmbeddingModule", "patch_embedding"]


@runtime_checkable
class PatchEmbedding(Protocol[ArrayT]):
    """Cut images into patches that don't overlap, and map each of them linearly.

    Construct: (image_size, patch_size, channels, d_model), image_size a multiple of patch_size.
    Shapes:    images (B, channels, image_size, image_size) → (B, N, d_model), N = (image_size / patch_size)².
    Order:     patches from left to right, then from top to bottom.
    Source:    Dosovitskiy et al. 2021, §3.1.
    """

    def __call__(self, images: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class PatchEmbeddingModule(PatchEmbedding[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, images: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class PatchEmbeddingConstructor(Protocol[Built_co]):
    """The class PatchEmbedding, or a function that builds one."""

    def __call__(self, image_size: int, patch_size: int, channels: int, d_model: int) -> Built_co: ...


def patch_embedding(weights: Weights, images: Array) -> Array:
    """Return the rows (B, N, D) of images (B, C, S, S): W · patch + b, patches of P × P pixels row by row."""
    matrix = np.asarray(weights["patch.weight"], np.float64)  # (D, C, P, P)
    size = matrix.shape[-1]
    found = []
    for top in range(0, images.shape[2], size):
        for left in range(0, images.shape[3], size):
            patch = images[:, :, top : top + size, left : left + size].reshape(len(images), -1)  # (B, C·P·P)
            found.append(patch @ matrix.reshape(len(matrix), -1).T + weights["patch.bias"])
    return np.stack(found, axis=1)
