"""Positions that are added to the embeddings.

    PE[p, 2i]   = sin(p / 10000^(2i/D))
    PE[p, 2i+1] = cos(p / 10000^(2i/D))        p ∈ {0, …, max_len - 1} the position, D the width

Vaswani et al. 2017, §3.5. Positions count from 0; a low index turns fast. The layout `halves` puts all sines before all
cosines. Learned positions are a table of free parameters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from conformkit.reference.errors import ShapeError
from conformkit.reference.sizes import check_at_least
from conformkit.spec.variants import CANONICAL, Variant

__all__ = [
    "LearnedPositions",
    "LearnedPositionsFrom",
    "NoPositions",
    "PositionalEncoding",
    "SinusoidalPositions",
    "SinusoidalPositionsFrom",
    "positions_for",
    "sinusoids",
    "tensor2tensor_sinusoids",
]


def sinusoids(length: int, width: int, layout: str = "interleaved") -> Tensor:
    """Tabulate sines and cosines whose wavelengths grow from 2π to 10000·2π.

    Shapes: → (length, width), float64 on the CPU
    Source: Vaswani et al. 2017, §3.5. Differs: an odd width has one more sine than cosines.
    """
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width  # (⌈D/2⌉,)
    positions = torch.arange(length, dtype=torch.float64, device="cpu")  # (length,)
    angles = positions[:, None] / 10000.0**exponents  # (length, ⌈D/2⌉)
    sines, cosines = angles.sin(), angles[:, : width // 2].cos()
    if layout == "halves":
        return torch.cat([sines, cosines], dim=1)  # (length, D)
    table = torch.empty(length, width, dtype=torch.float64, device="cpu")  # (length, D)
    table[:, 0::2] = sines
    table[:, 1::2] = cosines
    return table


def tensor2tensor_sinusoids(length: int, width: int, layout: str = "interleaved") -> Tensor:
    """Tabulate sines and cosines whose wavelengths reach 10000·2π at the last pair, i / (⌊D/2⌋ - 1) for 2i / D.

    Shapes: → (length, width), float64 on the CPU
    Source: tensor2tensor's `get_timing_signal_1d`, fairseq's `SinusoidalPositionalEmbedding`: an odd width ends in 0.
    """
    pairs = width // 2
    exponents = torch.arange(pairs, dtype=torch.float64, device="cpu") / max(pairs - 1, 1)  # (⌊D/2⌋,)
    places = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]  # (length, 1)
    waves = places / 10000**exponents  # (length, ⌊D/2⌋)
    both = [waves.sin(), waves.cos()]
    rows = torch.zeros(length, width, dtype=torch.float64, device="cpu")  # (length, D)
    rows[:, : 2 * pairs] = torch.cat(both, dim=1) if layout == "halves" else torch.stack(both, dim=-1).flatten(1)
    return rows


class SinusoidalPositions(nn.Module):
    """Add a fixed row of sines and cosines to each position.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: ShapeError when x has more positions than the table, or another width.
    Source: Annotated Transformer, Positional Encoding. Differs: the table is no buffer. A buffer would be rounded by
            `.float()` and stay so after `.double()`; this one stays float64, and is rounded to x's dtype when added.
    """

    def __init__(self, d_model: int, max_len: int, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model, max_len=max_len)
        self.table = sinusoids(max_len, d_model, variant.sinusoid_layout)  # (max_len, D)

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, T, D) to (…, T, D)."""
        _check_fits(x, *self.table.shape)
        return x + self.table[: x.shape[-2]].to(x.dtype).to(x.device)


class LearnedPositions(nn.Module):
    """Add a learned row to each position.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: ShapeError when x has more positions than the table, or another width.
    Source: Vaswani et al. 2017, §3.5, last paragraph.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model, max_len=max_len)
        self.weight = nn.Parameter(torch.randn(max_len, d_model))  # (max_len, D)

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, T, D) to (…, T, D)."""
        _check_fits(x, *self.weight.shape)
        return x + self.weight[: x.shape[-2]]


class SinusoidalPositionsFrom(SinusoidalPositions):
    """Add a fixed row to each position, counted from `first`, in any declared frequencies.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: as SinusoidalPositions.
    Source: fairseq's `SinusoidalPositionalEmbedding`.
    """

    def __init__(self, d_model: int, max_len: int, first: int, *, variant: Variant) -> None:
        super().__init__(d_model, max_len, variant=variant)
        tabulate = tensor2tensor_sinusoids if variant.sinusoid_frequencies == "tensor2tensor" else sinusoids
        self.table = tabulate(first + max_len, d_model, variant.sinusoid_layout)[first:]  # (max_len, D)


class LearnedPositionsFrom(LearnedPositions):
    """Add a learned row to each position, counted from `first`: the rows before are not used.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: as LearnedPositions.
    Source: fairseq's `LearnedPositionalEmbedding`.
    """

    def __init__(self, d_model: int, max_len: int, first: int) -> None:
        super().__init__(d_model, first + max_len)
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, T, D) to (…, T, D)."""
        before = x.new_zeros(*x.shape[:-2], self.first, x.shape[-1])  # (…, first, D)
        return super().forward(torch.cat([before, x], dim=-2))[..., self.first :, :]


class NoPositions(nn.Module):
    """Add nothing, because attention turns queries and keys instead, or positions are left out.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: ShapeError when x is too long, or not D wide.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model, max_len=max_len)
        self.max_len, self.d_model = max_len, d_model

    def forward(self, x: Tensor) -> Tensor:
        """Return x."""
        _check_fits(x, self.max_len, self.d_model)
        return x


class PositionalEncoding(nn.Module):
    """Add the encoding of its position to each row.

    Shapes: x (…, T, D) → (…, T, D), T at most max_len
    Raises: SizeError for a size below 1; ShapeError when x is too long, or not D wide.
    Source: nanoGPT, `model.py`, `GPT.forward`: too long an input is refused, even where broadcasting would let it pass.
    """

    def __init__(self, d_model: int, max_len: int, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        self.positions = positions_for(d_model, max_len, variant)
        scaled = variant.positions_scale and not isinstance(self.positions, NoPositions)
        self.scale = math.sqrt(d_model) if scaled else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, T, D) to (…, T, D)."""
        y: Tensor = self.positions(x if self.scale is None else self.scale * x)
        return y


def positions_for(d_model: int, max_len: int, variant: Variant, pad_id: int = 0) -> nn.Module:
    """Build what adds a variant's positions; with rotary positions, or none, nothing is added."""
    first = pad_id + 1 if variant.position_offset == "pad_id + 1" else int(variant.position_offset)
    if variant.positions == "sinusoidal" and (first or variant.sinusoid_frequencies != "vaswani"):
        return SinusoidalPositionsFrom(d_model, max_len, first, variant=variant)
    if variant.positions == "learned" and first:
        return LearnedPositionsFrom(d_model, max_len, first)
    if variant.positions == "sinusoidal":
        return SinusoidalPositions(d_model, max_len, variant=variant)
    if variant.positions == "learned":
        return LearnedPositions(d_model, max_len)
    return NoPositions(d_model, max_len)


def _check_fits(x: Tensor, max_len: int, d_model: int) -> None:
    if x.ndim < 2 or x.shape[-1] != d_model:
        raise ShapeError("the shape of x", tuple(x.shape), f"(…, positions, {d_model})")
    if x.shape[-2] > max_len:
        raise ShapeError("the number of positions in x", x.shape[-2], f"at most max_len = {max_len}")
