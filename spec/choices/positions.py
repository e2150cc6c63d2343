"""How positions are told, but for the details of rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import ADDED, IN_SCORES, STACKED, WHOLE_MODELS, WITH_POSITIONS, Rarity, choice

__all__ = ["OfPositions"]


@dataclass(frozen=True)
class OfPositions:
    """How positions are told, but for the details of rotation."""

    positions: Literal["sinusoidal", "learned", "rotary", "none", "alibi", "relative"] = choice(
        "sinusoidal",
        words={
            "sinusoidal": "sinusoidal positions",
            "learned": "learned positions",
            "rotary": "rotary positions",
            "none": "no positions",
            "alibi": "ALiBi",
            "relative": "T5's relative positions",
        },
        tried={"positions": 1, "attention": 7},
        rare=("alibi",),
        idle=lambda v, part: v.positions not in IN_SCORES and part not in WITH_POSITIONS,
    )
    alibi_slopes: Literal["interleaved", "geometric"] = choice(
        "interleaved",
        words={"interleaved": "ALiBi's published slopes", "geometric": "ALiBi's slopes as one geometric series"},
        tried={"attention": 14},
        rarity=Rarity.RARE,
        idle=lambda v, _: v.positions != "alibi",
    )
    """Of head counts that are no power of 2. interleaved: as published; geometric: 2^(-8(h + 1) / H) for any H."""
    relative_buckets: int = choice(
        32,
        in_use=(16, 64, 8, 128),
        tried={"relative": 1},
        rarity=Rarity.READ,
        beyond=STACKED,
        idle=lambda v, _: v.positions != "relative",
    )
    """The rows of T5's table of relative positions: each head has a number for so many ranges of distance."""
    relative_distance: int = choice(
        128,
        in_use=(256, 64, 512, 32),
        tried={"relative": 2},
        rarity=Rarity.READ,
        beyond=STACKED,
        idle=lambda v, _: v.positions != "relative",
    )
    """From this distance on all keys are in the last bucket."""
    relative_shared: bool = choice(
        True,
        words={
            True: "one table of relative positions for all layers",
            False: "a table of relative positions in each layer",
        },
        tried={"relative": 4},
        rarity=Rarity.READ,
        beyond=("Transformer",),
        idle=lambda v, part: v.positions != "relative" or part not in WHOLE_MODELS,
    )
    """All layers of a model share one table."""
    sinusoid_layout: Literal["interleaved", "halves"] = choice(
        "interleaved",
        words={"interleaved": "interleaved sines and cosines", "halves": "all sines, then all cosines"},
        tried={"positions": 2},
        idle=lambda v, _: v.positions != "sinusoidal",
    )
    sinusoid_frequencies: Literal["vaswani", "tensor2tensor"] = choice(
        "vaswani",
        words={"vaswani": "frequencies 10000^(-2i/D)", "tensor2tensor": "tensor2tensor's frequencies"},
        tried={"positions": 3},
        idle=lambda v, _: v.positions != "sinusoidal",
    )
    """vaswani: 10000^(-2i/D). tensor2tensor: 10000^(-i/(⌊D/2⌋ - 1)), whose last one is 1/10000."""
    position_offset: Literal[0, 2, "pad_id + 1"] = choice(
        0,
        words={
            0: "positions counted from 0",
            2: "positions counted from 2",
            "pad_id + 1": "positions counted from behind the padding id",
        },
        tried={"positions": 4},
        idle=lambda v, part: v.positions not in ADDED or part not in WITH_POSITIONS,
    )
    """Number of the first position, which is also its row; fairseq's tables begin behind the padding id, usually 1."""
    positions_scale: bool = choice(
        False,
        words={
            True: "a positional encoding that multiplies its input by √d_model",
            False: "a positional encoding that adds to its input as it is",
        },
        tried={"positions": 6},
        idle=lambda v, _: v.positions not in ADDED,
    )
    """PositionalEncoding multiplies its input by √d_model; models say so with embedding_scale, wherever it is done."""
