"""What happens to scores, to what heads give, and which keys are seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import SEQ2SEQ_LAYERS, Rarity, choice

__all__ = ["OfAttention"]


@dataclass(frozen=True)
class OfAttention:
    """What happens to scores, to what heads give, and which keys are seen."""

    qk_norm: Literal["none", "heads", "all"] = choice(
        "none",
        words={
            "none": "queries and keys without a norm",
            "heads": "a norm on each head's queries and keys",
            "all": "a norm on all queries and all keys",
        },
        tried={"attention": 10},
        rarity=Rarity.RARE,
        beyond=SEQ2SEQ_LAYERS,
        siblings=True,
    )
    """A norm of their own on queries and keys, before any rotation: over each head's features, or over all at once."""
    score_scale: bool = choice(
        True,
        words={True: "scores divided by √d", False: "scores that are not divided by √d"},
        tried={"relative": 3},
        rarity=Rarity.READ,
        beyond=(*SEQ2SEQ_LAYERS, "Transformer"),
    )
    """Scores are divided by √d, d the width of a head; in T5 they are not."""
    score_cap: float = choice(
        0.0,
        words={0.0: "scores without a cap"},
        in_use=(50.0, 30.0, 20.0, 10.0, 15.0, 5.0, 25.0, 100.0),
        tried={"attention": 12},
        rarity=Rarity.RARE,
        beyond=SEQ2SEQ_LAYERS,
    )
    """Scores s become cap · tanh(s / cap) before they are masked; 0: they stay."""
    sinks: bool = choice(
        False,
        words={True: "a learned sink in each head's softmax", False: "attention without sinks"},
        tried={"attention": 11},
        rarity=Rarity.RARE,
    )
    """Each head has a learned logit that takes part in the softmax and has no value."""
    output_gate: Literal["none", "features", "heads"] = choice(
        "none",
        words={
            "none": "attention whose output has no gate",
            "features": "a gate on each feature of what heads give",
            "heads": "a gate on each head",
        },
        tried={"attention": 15},
        rarity=Rarity.RARE,
        siblings=True,
    )
    """What heads give is multiplied by σ(W x) before the output projection: a number for each feature, or each head."""
    window: int = choice(
        0,
        words={0: "attention to all earlier keys"},
        in_use=(2, 3, 4, 1, 8, 16, 32, 64),
        tried={"attention": 13},
        rarity=Rarity.RARE,
    )
    """Causal attention sees so many keys, the last of them the query's own; 0: all."""
    window_layers: Literal["all", "even", "odd", "5 of 6"] = choice(
        "all",
        words={
            "all": "the window in all layers",
            "even": "the window in layers 0, 2, …",
            "odd": "the window in layers 1, 3, …",
            "5 of 6": "the window in 5 layers of 6",
        },
        tried={"model": 14},
        rarity=Rarity.RARE,
        idle=lambda v, part: not v.window or part != "TinyTransformerLM",
    )
    """The model's layers, counted from 0, that have the window; `5 of 6`: all but each sixth."""
