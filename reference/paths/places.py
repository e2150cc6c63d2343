"""Where ids stand in their text, and which of them a query sees: padding, packed texts, and rows kept from before.

    place[b, t] = number of real ids of the same text before t        seen[b, t, j] = j ≤ t ∧ real[b, j] ∧ same text

A row may hold padding on either side, or several texts one after the other. What is no part of a text is hidden from
it, and does not move it: the text has the logits that it has alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError
from conformkit.reference.masks import causal_mask

__all__ = ["checked", "places_of", "rotate_at", "seen_by"]


def checked(name: str, given: Tensor | None, shape: tuple[int, int]) -> Tensor | None:
    """Refuse what does not have a number for each id: (B, n + t), n the number of ids that a cache keeps."""
    if given is not None and tuple(given.shape) != shape:
        raise ShapeError(f"the shape of {name}", tuple(given.shape), f"{shape}, one for each id")
    return given


def places_of(ids: Tensor, kept: int, mask: Tensor | None, segments: Tensor | None) -> Tensor:
    """Count positions from 0 in each text: (B, t), for the ids that come after `kept` others.

    Shapes: ids (B, t), mask and segments (B, n + t), n = kept → (B, t)
    Source: position ids as GPT-2 and Llama in transformers take them.
    """
    rows, length = ids.shape
    real = torch.ones(rows, kept + length, dtype=torch.long, device=ids.device)  # (B, n + t)
    if mask is not None:
        real = (mask != 0).long()
    counted = real.cumsum(dim=1) - real  # (B, n + t), real ids before each
    if segments is not None:
        begins = torch.ones_like(segments, dtype=torch.bool)  # (B, n + t)
        begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
        first = counted.masked_fill(~begins, 0).cummax(dim=1).values  # (B, n + t), counted where the text begins
        counted = counted - first
    return counted[:, kept:]


def seen_by(ids: Tensor, kept: int, mask: Tensor | None, segments: Tensor | None) -> Tensor:
    """Say which keys each query sees: those before it and its own, of its own text, and no padding.

    Shapes: ids (B, t), mask and segments (B, n + t), n = kept → boolean (t, n + t), or (B, 1, t, n + t)
    """
    length = ids.shape[1]
    seen = causal_mask(length, kept + length, device=ids.device)  # (t, n + t): the queries are the last positions
    if mask is not None:
        seen = seen & (mask != 0)[:, None, None, :]  # (B, 1, t, n + t)
    if segments is not None:
        same = segments[:, kept:, None] == segments[:, None, :]  # (B, t, n + t)
        seen = seen & same[:, None]
    return seen


def rotate_at(x: Tensor, places: Tensor, base: float, layout: str) -> Tensor:
    """Turn rows by the angles of their own places.

    Shapes: x (B, h, t, dh), places (B, t) → (B, h, t, dh)
    Units:  angles in radians, computed in float64 whatever the dtype of x.
    Source: Su et al. 2021, eq. 34; see `conformkit.reference.rotary`.
    """
    pairs = x.shape[-1] // 2
    speeds = base ** (-torch.arange(pairs, dtype=torch.float64, device=x.device) / pairs)  # (dh/2,)
    angles = places[:, None, :, None] * speeds  # (B, 1, t, dh/2)
    shape = (pairs, 2) if layout == "pairs" else (2, pairs)
    axis = -1 if layout == "pairs" else -2
    a, b = x.double().reshape(*x.shape[:-1], *shape).unbind(axis)  # (B, h, t, dh/2) each
    turned = torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=axis)
    return turned.flatten(-2).to(x.dtype)  # (B, h, t, dh)
