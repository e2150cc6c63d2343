"""Masks: who may attend to whom.

A boolean mask says for each query and key whether the query MAY attend to the key (True = may). A float mask is a
number added to each score; -inf hides a key. Either broadcasts to the scores' shape (…, Tq, Tk) and never enlarges it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import DtypeError, ShapeError

__all__ = ["causal_mask", "combine_masks", "mask_scores", "padding_mask"]


def causal_mask(queries: int, keys: int | None = None, *, device: torch.device | None = None) -> Tensor:
    """Let position t attend to positions up to and including t.

        M[t, j] = (j ≤ t + Tk - Tq)

    Shapes: → boolean (Tq, Tk); Tk defaults to Tq
    Source: Vaswani et al. 2017, §3.2.3. Differs: with fewer queries than keys, the queries are the last positions.
    """
    keys = queries if keys is None else keys
    everything = torch.ones(queries, keys, dtype=torch.bool, device=device)  # (Tq, Tk)
    return everything.tril(keys - queries)


def padding_mask(ids: Tensor, pad_token_id: int = 0) -> Tensor:
    """Hide the keys that are padding; padded queries still attend, and the loss ignores them.

    Shapes: ids (B, T) → boolean (B, 1, 1, T), for scores (B, H, T, T)
    Source: Annotated Transformer, Batches and Masking.
    """
    return (ids != pad_token_id)[:, None, None, :]  # (B, 1, 1, T)


def combine_masks(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Return the mask that hides what either of two masks hides.

    Shapes: two masks that broadcast to one another → their common shape
    Units:  boolean if both are; otherwise float, a boolean mask counting as 0 (may attend) and -inf (hidden).
    """
    if first is None or second is None:
        return second if first is None else first
    if first.dtype == torch.bool and second.dtype == torch.bool:
        return first & second
    return _additive(first) + _additive(second)


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    """Hide scores, or add to them, as a mask says.

    Shapes: scores (…, Tq, Tk), mask broadcastable to that → (…, Tq, Tk)
    Raises: DtypeError for an integer mask: 0 and 1 would be added as numbers, or read with either meaning.
            ShapeError when the mask does not broadcast, or would enlarge the scores.
    """
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise DtypeError("the mask's dtype", mask.dtype, "torch.bool (True = may attend) or a float type (added)")
    if not _broadcasts(mask.shape, scores.shape):
        raise ShapeError("the mask's shape", tuple(mask.shape), f"one that broadcasts to {tuple(scores.shape)}")
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, float("-inf"))
    return scores + mask.to(scores.dtype)


def _additive(mask: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, float("-inf"))


def _broadcasts(shape: torch.Size, target: torch.Size) -> bool:
    """Whether `shape` stretches to exactly `target`."""
    if len(shape) > len(target):
        return False
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return all(size in (1, wanted) for size, wanted in pairs)
