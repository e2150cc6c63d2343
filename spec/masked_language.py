"""Hiding ids for an encoder to predict: Protocol, and the frequency of each case (oracle)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from conformkit.spec.protocols import ArrayT, Named

__all__ = ["MASKED", "REPLACED", "MaskTokens", "Share", "shares"]

MASKED, REPLACED = 0.8, 0.1
"""Shares of the chosen ids that become the mask, and that become a random id. The others stay."""


@runtime_checkable
class MaskTokens(Named, Protocol[ArrayT]):
    """Choose ids to be predicted, and hide most of them.

    Shapes: ids (B, T) → inputs, labels (B, T), integers; -100 where nothing is to be predicted
    Source: Devlin et al. 2019, appendix A.1. Draws come from the framework's global generator.
    """

    def __call__(
        self, ids: ArrayT, mask_id: int, vocab_size: int, special_ids: list[int], probability: float = 0.15
    ) -> tuple[ArrayT, ArrayT]: ...


@dataclass(frozen=True, slots=True)
class Share:
    """Bounds of a frequency."""

    low: float
    high: float


def shares(vocab_size: int, special: int) -> dict[str, Share]:
    """Return the shares of chosen ids that are masked, replaced by another id, or unchanged.

    An id that is drawn at random may be the mask or the original one; `special` ids may be excluded from the draw.
    """
    again = REPLACED / (vocab_size - special - 1)
    return {
        "masked": Share(MASKED, MASKED + again),
        "replaced": Share(REPLACED - 2.0 * again, REPLACED),
        "kept": Share(1.0 - MASKED - REPLACED, 1.0 - MASKED - REPLACED + again),
    }
