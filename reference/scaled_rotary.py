"""Scaled rotary positions: lower frequencies, for texts longer than those of the training.

    linear   θᵢ / s                                               Chen et al. 2023, §2.3
    ntk      (b s^(d/(d-2)))^(-2i/d)                              Peng et al. 2024, §3.1
    llama3   γᵢ θᵢ + (1 - γᵢ) θᵢ / s,  γᵢ from the turns Lθᵢ/2π    llama-models, apply_scaling
    yarn     the same, γᵢ from the pair's number i; cosines and sines times 0.1 ln s + 1    Peng et al. 2024, §3.2, §3.4

θᵢ = b^(-2i/d) is the frequency of pair i ∈ {0, …, d/2 - 1}, b the base, s the factor, L the length of training texts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conformkit.spec.variants import Variant

__all__ = ["attention_factor", "scaled"]


def scaled(angles: Tensor, width: int, variant: Variant) -> Tensor:
    """Return the angles that a variant gives in place of the unscaled ones.

    Shapes: (T, d/2) → (T, d/2)
    """
    s = variant.rotary_factor
    if variant.rotary_scaling == "linear":
        return angles / s
    pairs = torch.arange(width // 2, dtype=torch.float64)  # (d/2,)
    if variant.rotary_scaling == "ntk":
        return angles * s ** (-2.0 * pairs / (width - 2))
    theta = variant.rotary_base ** (-2.0 * pairs / width)  # (d/2,)
    kept = _llama3(theta, variant) if variant.rotary_scaling == "llama3" else _yarn(pairs, width, variant)
    return angles * (kept + (1.0 - kept) / s)


def attention_factor(variant: Variant) -> float:
    """Return what YaRN multiplies cosines and sines by: 0.1 ln s + 1, if no other number is declared."""
    if variant.rotary_magnitude:
        return variant.rotary_magnitude
    return 0.1 * math.log(max(variant.rotary_factor, 1.0)) + 1.0


def _llama3(theta: Tensor, variant: Variant) -> Tensor:
    """Return how much of its frequency each pair keeps, 0 to 1: (d/2,)."""
    low, high = variant.rotary_low, variant.rotary_high or 4.0
    turns = variant.rotary_length * theta / (2.0 * math.pi)  # (d/2,), over a text of the training
    return ((turns - low) / (high - low)).clamp(0.0, 1.0)


def _yarn(pairs: Tensor, width: int, variant: Variant) -> Tensor:
    """Return the same for YaRN: 1 for the first pairs, 0 for the last ones, a ramp between: (d/2,)."""
    fast, slow = variant.rotary_high or 32.0, variant.rotary_low
    start, stop = (_pair_with(turns, width, variant) for turns in (fast, slow))
    if variant.rotary_whole_pairs:
        start, stop = math.floor(start), math.ceil(stop)
    start, stop = max(start, 0.0), min(stop, width - 1.0)
    if start == stop:
        stop += 0.001
    return 1.0 - ((pairs - start) / (stop - start)).clamp(0.0, 1.0)


def _pair_with(turns: float, width: int, variant: Variant) -> float:
    """Return the number of the pair that makes so many turns over a text of the training; a fraction between pairs."""
    return width * math.log(variant.rotary_length / (turns * 2.0 * math.pi)) / (2.0 * math.log(variant.rotary_base))
