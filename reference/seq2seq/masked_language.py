"""Hide some ids of a text, for an encoder that guesses them from both sides.

    chosen: each id that is not special, independently with probability p
    input:  of the chosen, 80 % become the mask id, 10 % any id, 10 % stay        label: the id itself, -100 elsewhere

Devlin et al. 2019, §3.1 and appendix A.1 (p = 0.15).
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError
from conformkit.reference.sizes import check_at_least

__all__ = ["IGNORED", "mask_tokens"]

IGNORED = -100
"""The label that does not count."""
_MASKED, _REPLACED = 0.8, 0.1


def mask_tokens(
    ids: Tensor, mask_id: int, vocab_size: int, special_ids: Collection[int], probability: float = 0.15
) -> tuple[Tensor, Tensor]:
    """Choose ids to be guessed, and hide most of them.

    Shapes: ids (B, T) → inputs (B, T), labels (B, T); copies, so that writing into them leaves ids as they are
    Raises: SizeError for a probability outside 0 to 1, or an empty vocabulary.
    Source: Devlin et al. 2019, appendix A.1. Draws come from torch's global generator.
    """
    check_at_least(1, vocab_size=vocab_size)
    if not 0.0 <= probability <= 1.0:
        raise SizeError("probability", probability, "between 0 and 1")
    special = torch.isin(ids, ids.new_tensor(sorted({*special_ids, mask_id})))  # (B, T)
    chosen = (torch.rand(ids.shape, device=ids.device) < probability) & ~special  # (B, T)
    labels = ids.masked_fill(~chosen, IGNORED)  # (B, T)
    fate = torch.rand(ids.shape, device=ids.device)  # (B, T)
    masked = chosen & (fate < _MASKED)
    replaced = chosen & (fate >= _MASKED) & (fate < _MASKED + _REPLACED)
    inputs = ids.masked_fill(masked, mask_id)  # (B, T)
    inputs = torch.where(replaced, torch.randint_like(ids, vocab_size), inputs)  # (B, T)
    return inputs, labels
