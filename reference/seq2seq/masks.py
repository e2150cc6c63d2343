"""Masks of an encoder-decoder: what is padding, and what is still to come. True = may attend.

    source [b, 1, 1, s] = (src[b, s] ≠ pad)        target [b, 1, t, j] = (tgt[b, j] ≠ pad) ∧ (j ≤ t)

The source mask also serves as the memory's in cross-attention. `tgt` is what the decoder reads, shifted to the right
already: a mask from the ids before the shift hides the last real one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.masks import causal_mask, padding_mask
from conformkit.reference.sizes import check_at_least

__all__ = ["create_causal_mask", "create_masks", "create_padding_mask"]


def create_padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Hide the keys that are padding; padded queries still attend, and the loss ignores them.

    Shapes: ids (B, T) → boolean (B, 1, 1, T), for scores (B, H, …, T)
    Source: Annotated Transformer, Batches and Masking.
    """
    return padding_mask(ids, pad_id)


def create_causal_mask(size: int, *, device: torch.device | None = None) -> Tensor:
    """Let position t attend to positions up to and including t.

    Shapes: → boolean (size, size), a lower triangle
    Raises: SizeError for a negative size.
    Source: Annotated Transformer, Batches and Masking. True is what may be seen, here and everywhere.
    """
    check_at_least(0, size=size)
    return causal_mask(size, device=device)


def create_masks(src: Tensor, tgt: Tensor, pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Return the masks of a batch: the source's padding, and the target's padding together with its future.

    Shapes: src (B, S), tgt (B, T) → boolean (B, 1, 1, S), (B, 1, T, T)
    Source: Annotated Transformer, Batches and Masking.
    """
    src_mask = create_padding_mask(src, pad_id)  # (B, 1, 1, S)
    causal = create_causal_mask(tgt.shape[1], device=tgt.device)  # (T, T)
    tgt_mask = create_padding_mask(tgt, pad_id) & causal  # (B, 1, T, T)
    return src_mask, tgt_mask
