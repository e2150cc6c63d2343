"""Hiding ids for an encoder to guess: what is promised (Protocol), and how often each thing happens (oracle)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["MASKED", "REPLACED", "MaskTokens", "Share", "shares"]

MASKED, REPLACED = 0.8, 0.1
"""Of the chosen ids: those that become the mask, those that become any id. The others stay."""


class MaskTokens(Protocol):
    """Choose ids to be guessed, and hide most of them.

    Shapes: ids (B, T) → inputs, labels (B, T), integers; -100 where nothing is to be guessed
    Source: Devlin et al. 2019, appendix A.1. Draws come from the framework's global generator.
    """

    def __call__(self, ids: Any, mask_id: int, vocab_size: int, special_ids: Any, probability: float = 0.15) -> Any: ...


@dataclass(frozen=True, slots=True)
class Share:
    """How often something happens, at least and at most."""

    low: float
    high: float


def shares(vocab_size: int, special: int) -> dict[str, Share]:
    """Return of chosen ids which share is masked, replaced by another, or as it was.

    An id that is drawn at random may be the mask or the one that was there; `special` ids may be left out of the draw.
    """
    again = REPLACED / (vocab_size - special - 1)
    return {
        "masked": Share(MASKED, MASKED + again),
        "replaced": Share(REPLACED - 2.0 * again, REPLACED),
        "kept": Share(1.0 - MASKED - REPLACED, 1.0 - MASKED - REPLACED + again),
    }
