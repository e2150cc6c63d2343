"""Rotary positions: layout, base, and how frequencies are scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import Rarity, choice, not_by_turns, not_rotary, not_yarn

__all__ = ["OfRotary"]


@dataclass(frozen=True)
class OfRotary:
    """Rotary positions: layout, base, and how frequencies are scaled."""

    rotary_layout: Literal["pairs", "halves"] = choice(
        "pairs",
        words={"pairs": "rotation of neighboring features", "halves": "rotation of features half a head apart"},
        tried={"attention": 8},
        idle=not_rotary,
    )
    rotary_base: float = choice(
        10000.0,
        in_use=(500000.0, 1000000.0, 1000.0, 500.0, 100000.0),
        tried={"attention": 9},
        idle=not_rotary,
    )
    window_rotary_base: float = choice(
        0.0,
        words={0.0: "one base of rotation in all layers"},
        in_use=(10000.0, 1000.0, 100000.0),
        tried={"window_base": 1},
        rarity=Rarity.READ,
        needs=("window", "window", "window"),
        idle=lambda v, _: not v.window or v.positions != "rotary",
    )
    """The base of rotation in layers with the window, whose frequencies are not scaled; 0: as in the others."""
    rotary_fraction: float = choice(
        1.0,
        words={1.0: "rotation of all features"},
        in_use=(0.5, 0.25, 0.75, 0.4),
        tried={"rotary": 1},
        rarity=Rarity.RARE,
        idle=not_rotary,
    )
    """The share of each head's features that rotate, its first ones; their frequencies count these features only."""
    rotary_scaling: Literal["none", "linear", "ntk", "llama3", "yarn"] = choice(
        "none",
        words={
            "none": "unscaled rotary frequencies",
            "linear": "rotary positions divided by a factor",
            "ntk": "rotary frequencies scaled by a larger base (NTK)",
            "llama3": "Llama 3's scaled rotary frequencies",
            "yarn": "YaRN's scaled rotary frequencies",
        },
        tried={"rotary": 2},
        rarity=Rarity.RARE,
        idle=not_rotary,
    )
    """How frequencies are made lower for texts longer than those of the training. See `rotary.frequencies`."""
    rotary_factor: float = choice(
        8.0,
        in_use=(2.0, 4.0, 32.0, 16.0, 40.0, 64.0),
        tried={"rotary": 3},
        rarity=Rarity.RARE,
        idle=lambda v, _: v.positions != "rotary" or v.rotary_scaling == "none",
    )
    """By how much, where `rotary_scaling` is not none."""
    rotary_length: int = choice(
        8192,
        in_use=(4096, 2048, 1024, 16, 32, 64, 128, 256, 512, 32768),
        tried={"rotary": 4},
        rarity=Rarity.RARE,
        idle=not_by_turns,
    )
    """The length of training texts over which llama3 and yarn count the turns of a pair."""
    rotary_low: float = choice(
        1.0,
        in_use=(2.0, 0.5),
        tried={"rotary": 5},
        rarity=Rarity.RARE,
        idle=not_by_turns,
    )
    """llama3, yarn: pairs with fewer turns are divided by the factor."""
    rotary_high: float = choice(
        0.0,
        in_use=(4.0, 8.0, 32.0),
        tried={"rotary": 6},
        rarity=Rarity.RARE,
        idle=not_by_turns,
    )
    """llama3, yarn: pairs with more turns stay; 0: 4 with llama3, 32 with yarn."""
    rotary_whole_pairs: bool = choice(
        True,
        words={True: "YaRN's bounds at whole pairs", False: "YaRN's bounds as they are, between pairs"},
        tried={"rotary": 7},
        rarity=Rarity.RARE,
        idle=not_yarn,
    )
    """yarn: pairs between which frequencies are mixed are rounded outwards to whole ones."""
    rotary_magnitude: float = choice(
        0.0,
        words={0.0: "YaRN's own factor of queries and keys"},
        in_use=(1.0, 2.0),
        tried={"rotary": 8},
        rarity=Rarity.RARE,
        idle=not_yarn,
    )
    """yarn: the factor of rotated queries and of rotated keys; 0: 0.1 ln s + 1, s the factor."""
