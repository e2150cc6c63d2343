"""Positions: sinusoids added to embeddings, rotations of queries and keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.rotary import frequencies, magnitude, rotated_width
from conformkit.spec.variants import Variant

__all__ = [
    "PositionalEncoding", "PositionalEncodingConstructor", "PositionalEncodingModule", "first_position",
    "input_scale", "positional_encoding", "rotate", "sinusoids",
]  # fmt: skip


@runtime_checkable
class PositionalEncoding(Protocol[ArrayT]):
    """Add to each position's features a code of the position.

    Construct: (d_model, max_len).
    Shapes:    (B, T, d_model) → (B, T, d_model), T at most max_len.
    Raises:    should raise when T is larger than max_len; no code may be given twice.
    Source:    Vaswani et al. 2017, §3.5.
    """

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class PositionalEncodingModule(PositionalEncoding[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class PositionalEncodingConstructor(Protocol[Built_co]):
    """The class PositionalEncoding, or a function that builds one."""

    def __call__(self, d_model: int, max_len: int) -> Built_co: ...


def first_position(variant: Variant, sizes: Mapping[str, Any]) -> int:
    """Return the number of the first position; where there is no padding id, 0 is taken for it."""
    offset = variant.position_offset
    return int(sizes.get("pad_id") or 0) + 1 if offset == "pad_id + 1" else int(offset)


def input_scale(variant: Variant, width: int) -> float:
    """Return the factor that PositionalEncoding itself applies to its input."""
    return math.sqrt(width) if variant.positions_scale and variant.positions in {"sinusoidal", "learned"} else 1.0


def sinusoids(length: int, width: int, variant: Variant, first: int = 0) -> Array:
    """Return the table (length, width): sin and cos of pos / 10000^(2i / width) for the pair i.

    Positions count from `first`. Interleaved: sines at even features, cosines at odd ones; halves: all sines, then all
    cosines. An odd width has one more sine; with tensor2tensor's frequencies, 10000^(-i / (⌊width / 2⌋ - 1)), a last 0.
    """
    exponents = np.arange(0, width, 2) / width  # one per pair
    if variant.sinusoid_frequencies == "tensor2tensor":
        exponents = np.arange(width // 2) / max(width // 2 - 1, 1)
    angles = (first + np.arange(length))[:, None] / 10000.0**exponents  # (length, pairs)
    sines, cosines = np.sin(angles), np.cos(angles)[:, : width // 2]
    table = np.zeros((length, width))
    if variant.sinusoid_layout == "halves":
        both = np.concatenate([sines, cosines], axis=-1)
        table[:, : both.shape[1]] = both
    else:
        table[:, 0 : 2 * sines.shape[1] : 2], table[:, 1::2] = sines, cosines
    return table


def positional_encoding(weights: Weights, x: Array, *, variant: Variant, first: int = 0) -> Array:
    """Return x plus its positions' codes, a learned table or sinusoids; x if they act in attention or are absent."""
    length, width = x.shape[-2:]
    if variant.positions in {"rotary", "alibi", "relative", "none"}:
        return x
    if variant.positions == "learned":
        return np.asanyarray(x + weights["positions.weight"][first : first + length])
    return np.asanyarray(x + sinusoids(length, width, variant, first))


def rotate(x: Array, variant: Variant) -> Array:
    """Rotate the pair i of each row by pos · frequency i; x (…, T, width). The rest of a head stays as it is.

    pairs: features (2i, 2i+1) form a pair; halves: features (i, i + r/2) do, r the number of rotated features.
    Source: Su et al. 2021, eq. 34.
    """
    length, turned = x.shape[-2], rotated_width(x.shape[-1], variant)
    angles = np.arange(length)[:, None] * frequencies(turned, variant)  # (T, r/2)
    cosines, sines = magnitude(variant) * np.cos(angles), magnitude(variant) * np.sin(angles)
    x, rest = x[..., :turned], x[..., turned:]
    first, second = (
        (x[..., 0::2], x[..., 1::2])
        if variant.rotary_layout == "pairs"
        else (x[..., : turned // 2], x[..., turned // 2 :])
    )
    both = first * cosines - second * sines, first * sines + second * cosines
    if variant.rotary_layout == "halves":
        return np.concatenate([*both, rest], axis=-1)
    return np.concatenate([np.stack(both, axis=-1).reshape(x.shape), rest], axis=-1)
