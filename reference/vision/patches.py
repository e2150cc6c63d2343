"""Patches of an image as the rows that an encoder reads.

    z_n = W · patch_n + b        patch_n ∈ ℝ^(C·P·P), n from left to right, then from top to bottom

W ∈ ℝ^(D×(C·P·P)); an image of S×S pixels has (S/P)² patches, none of which overlap. Dosovitskiy et al. 2021, §3.1,
eq. 1. A convolution whose stride is its kernel's extent is the same map; it is written out here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from conformkit.reference.errors import DtypeError, ShapeError, SizeError
from conformkit.reference.sizes import check_at_least

__all__ = ["PatchEmbedding"]


class PatchEmbedding(nn.Module):
    """Cut images into patches, and map each of them linearly.

    Shapes: images (B, C, S, S) → (B, N, D), N = (S / P)²
    Raises: SizeError when image_size is no multiple of patch_size, or a size is below 1; ShapeError when images are not
            (B, C, S, S); DtypeError when they are no floating-point numbers.
    Source: Dosovitskiy et al. 2021, §3.1.
    """

    def __init__(self, image_size: int, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        check_at_least(1, image_size=image_size, patch_size=patch_size, channels=channels, d_model=d_model)
        if image_size % patch_size:
            raise SizeError("image_size", image_size, f"a multiple of patch_size = {patch_size}")
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.count = (image_size // patch_size) ** 2
        self.weight = nn.Parameter(torch.empty(d_model, channels, patch_size, patch_size))
        self.bias = nn.Parameter(torch.zeros(d_model))
        nn.init.normal_(self.weight, std=1.0 / math.sqrt(channels * patch_size**2))

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, S, S) to rows (B, N, D)."""
        self._check(images)
        side, p = self.image_size // self.patch_size, self.patch_size
        grid = images.reshape(-1, self.channels, side, p, side, p)  # (B, C, rows, P, columns, P)
        patches = grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (B, N, C·P·P)
        return patches @ self.weight.flatten(1).T + self.bias  # (B, N, D)

    def _check(self, images: Tensor) -> None:
        wanted = self.channels, self.image_size, self.image_size
        if images.ndim != 4 or tuple(images.shape[1:]) != wanted:
            raise ShapeError("the shape of the images", tuple(images.shape), f"(batch, {', '.join(map(str, wanted))})")
        if not images.is_floating_point():
            raise DtypeError("the dtype of the images", images.dtype, "a floating-point type")
