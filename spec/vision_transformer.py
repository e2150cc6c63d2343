"""The vision transformer: Protocol and oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.encoder import encoder
from conformkit.spec.layers import Weights, linear
from conformkit.spec.loss import log_softmax
from conformkit.spec.patch_embedding import patch_embedding
from conformkit.spec.positional_encoding import positional_encoding
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["VisionTransformer", "VisionTransformerConstructor", "VisionTransformerModule", "vision_transformer"]


@runtime_checkable
class VisionTransformer(Protocol[ArrayT]):
    """Classify images by what a class token reads of their patches.

    Construct: (image_size, patch_size, channels, num_classes, d_model, num_heads, num_layers, d_ff, dropout=0.0).
    Shapes:    images (B, channels, image_size, image_size) → logits (B, num_classes).
    Source:    Dosovitskiy et al. 2021, §3.1.
    """

    def __call__(self, images: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class VisionTransformerModule(VisionTransformer[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, images: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class VisionTransformerConstructor(Protocol[Built_co]):
    """The class VisionTransformer, or a function that builds one."""

    def __call__(
        self, image_size: int, patch_size: int, channels: int, num_classes: int, d_model: int, num_heads: int,
        num_layers: int, d_ff: int, dropout: float = 0.0,
    ) -> Built_co: ...  # fmt: skip


def vision_transformer(weights: Weights, images: Array, sizes: Mapping[str, Any], variant: Variant) -> Array:
    """Return the logits (B, K) of images (B, C, S, S), or their log-softmax."""
    x = patch_embedding(weights, images)  # (B, N, D)
    if variant.pooling == "class":
        token = np.broadcast_to(weights["class_token.weight"], (len(x), 1, x.shape[-1]))
        x = np.concatenate([token, x], axis=1)  # (B, N + 1, D)
    x = positional_encoding(weights, x, variant=variant)
    x = encoder(
        weights, x, None, num_layers=sizes["num_layers"], num_heads=sizes["num_heads"], kv_heads=sizes["kv_heads"],
        variant=variant,
    )  # fmt: skip
    logits = linear(weights, "head", x[:, 0] if variant.pooling == "class" else x.mean(axis=1))
    return log_softmax(logits) if variant.log_probabilities else logits
