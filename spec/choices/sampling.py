"""What sampling and penalties do first, and count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import choice

__all__ = ["OfSampling"]


@dataclass(frozen=True)
class OfSampling:
    """What sampling and penalties do first, and count."""

    temperature_last: bool = choice(
        False,
        words={True: "filters before the temperature", False: "the temperature before filters"},
    )
    """Sampling filters by the probabilities at temperature 1, and applies the temperature to what is left."""
    repetition_counts: Literal["all", "new"] = choice(
        "all",
        words={"all": "a repetition penalty on the whole text", "new": "a repetition penalty on new ids only"},
    )
    """The ids that a repetition penalty makes less probable: those of the whole text, or without the prompt."""
    penalty_counts: Literal["new", "all"] = choice(
        "new",
        words={"new": "penalties that count new ids only", "all": "penalties that count the prompt too"},
    )
    """The ids that penalties for presence and frequency count: those after the prompt, or all."""
