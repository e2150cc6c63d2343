"""Rotary positions: turn queries and keys by an angle that grows with the position.

    θ[p, i] = p / base^(2i/dh)        (a, b) → (a cos θ - b sin θ, a sin θ + b cos θ)

p is the position from 0, i ∈ {0, …, dh/2 - 1} numbers the pairs (a, b) of features. After turning, the dot product of
a query and a key depends on their distance only. Su et al. 2021, §3.2.2. The paper pairs neighbors (layout `pairs`);
many models pair feature i with i + dh/2 (layout `halves`). Some turn only the first r features of a head: then r takes
the place of dh.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.scaled_rotary import attention_factor, scaled
from conformkit.spec.variants import Variant

__all__ = ["own_rotation", "rotate"]


def rotate(x: Tensor, variant: Variant) -> Tensor:
    """Turn the row at each position by that position's angles.

    Shapes: (…, T, dh) → (…, T, dh), an even number of them turned
    Units:  angles in radians, computed in float64 whatever the dtype of x.
    Source: Su et al. 2021, eq. 34.
    """
    if variant.rotary_fraction < 1.0:
        return _rotate_first(x, variant)
    variant = own_rotation(variant)
    base, layout = variant.rotary_base, variant.rotary_layout
    length, width = x.shape[-2:]
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width  # (dh/2,)
    positions = torch.arange(length, dtype=torch.float64)  # (T,)
    angles = positions[:, None] / base**exponents  # (T, dh/2)
    if variant.rotary_scaling != "none":
        angles = scaled(angles, width, variant)  # (T, dh/2)
    cos, sin = angles.cos().to(x.dtype).to(x.device), angles.sin().to(x.dtype).to(x.device)
    if variant.rotary_scaling == "yarn":
        cos, sin = attention_factor(variant) * cos, attention_factor(variant) * sin
    if layout == "pairs":
        a, b = x[..., 0::2], x[..., 1::2]  # (…, T, dh/2) each
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (…, T, dh/2, 2)
        return turned.flatten(-2)  # (…, T, dh)
    a, b = x.chunk(2, dim=-1)  # (…, T, dh/2) each
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (…, T, dh)


def own_rotation(variant: Variant) -> Variant:
    """Return the choices of a layer: with a window it may have a base of its own, and then no scaling.

    Source: Kamath et al. 2025, §2.
    """
    if variant.window and variant.window_rotary_base:
        return variant.but(rotary_base=variant.window_rotary_base, rotary_scaling="none")
    return variant


def _rotate_first(x: Tensor, variant: Variant) -> Tensor:
    """Turn the first features of each row, and keep the others as they are: (…, T, dh) → (…, T, dh)."""
    width = round(variant.rotary_fraction * x.shape[-1])
    first, rest = x[..., :width], x[..., width:]  # (…, T, r), (…, T, dh - r)
    return torch.cat([rotate(first, variant.but(rotary_fraction=1.0)), rest], dim=-1)
