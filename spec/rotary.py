"""Rotary positions in all their variants: which features turn, and how far each pair turns per position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["frequencies", "magnitude", "rotated_width", "turning_width", "turns_whole_pairs", "unscaled_frequencies"]

_HIGH = {"llama3": 4.0, "yarn": 32.0}
"""Turns over the original length from which on a pair keeps its frequency, where `rotary_high` is not declared."""


def rotated_width(width: int, variant: Variant) -> int:
    """Return how many of a head's features rotate, the first ones; 0 where that is no even whole number."""
    exact = variant.rotary_fraction * width
    near = round(exact)
    return near if near % 2 == 0 and abs(exact - near) < 1e-6 else 0


def turning_width(sizes: Mapping[str, Any], variant: Variant) -> int:
    """Return the width of what rotates: of a head, or beside a latent that of the part which rotates."""
    return int(sizes["rotary_width"] if variant.has_latent else sizes["head_width"])


def turns_whole_pairs(width: int, variant: Variant) -> bool:
    """Whether a head of this width can have the variant's positions; NTK's exponent needs two pairs."""
    if variant.positions != "rotary":
        return True
    return rotated_width(width, variant) >= (4 if variant.rotary_scaling == "ntk" else 2)


def unscaled_frequencies(turned: int, variant: Variant) -> Array:
    """Return base^(-2i / r) for each pair i of r rotated features, (r/2,). Source: Su et al. 2021, §3.2.2."""
    return np.asarray(variant.rotary_base ** -(np.arange(0, turned, 2) / turned))


def frequencies(turned: int, variant: Variant) -> Array:
    """Return by how many radians each pair turns per position, (r/2,), scaled as the variant says.

    linear: all divided by s. ntk: the base times s^(r / (r - 2)). llama3 and yarn: pairs that turn often over the
    original length stay, pairs that turn seldom are divided by s, those between are mixed.
    Source: Chen et al. 2023, §2; Peng et al. 2024, §3; llama-models, apply_scaling.
    """
    variant = variant.turning
    own, factor = unscaled_frequencies(turned, variant), variant.rotary_factor
    if variant.rotary_scaling == "none":
        return own
    if variant.rotary_scaling == "linear":
        return own / factor
    if variant.rotary_scaling == "ntk":
        enlarged = variant.rotary_base * factor ** (turned / (turned - 2))
        return unscaled_frequencies(turned, variant.but(rotary_base=enlarged))
    kept = _by_turns(own, variant) if variant.rotary_scaling == "llama3" else _by_pair(turned, variant)
    return kept * own + (1.0 - kept) * own / factor


def _by_turns(own: Array, variant: Variant) -> Array:
    """Return the share of its own frequency that each pair keeps: it grows with the pair's turns."""
    turns = variant.rotary_length * own / (2.0 * np.pi)
    return np.clip((turns - variant.rotary_low) / (_high(variant) - variant.rotary_low), 0.0, 1.0)


def _by_pair(turned: int, variant: Variant) -> Array:
    """Return the same, where it falls with the pair's number, between those that make so many turns."""

    def pair(turns: float) -> float:
        """Return the number, not whole, of the pair that makes so many turns over the original length."""
        return (
            turned * math.log(variant.rotary_length / (2.0 * math.pi * turns)) / (2.0 * math.log(variant.rotary_base))
        )

    first, last = pair(_high(variant)), pair(variant.rotary_low)
    if variant.rotary_whole_pairs:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, turned - 1)
    last += 0.001 if first == last else 0.0
    return np.asarray(1.0 - np.clip((np.arange(turned // 2) - first) / (last - first), 0.0, 1.0))


def _high(variant: Variant) -> float:
    return variant.rotary_high or _HIGH[variant.rotary_scaling]


def magnitude(variant: Variant) -> float:
    """Return the factor of rotated queries and of rotated keys: with YaRN 0.1 ln s + 1.

    Source: Peng et al. 2024, §3.4.
    """
    variant = variant.turning
    if variant.rotary_scaling != "yarn":
        return 1.0
    return variant.rotary_magnitude or (
        0.1 * math.log(variant.rotary_factor) + 1.0 if variant.rotary_factor > 1 else 1.0
    )
