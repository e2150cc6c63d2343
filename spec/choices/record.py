"""The record of a choice, and conditions under which several of them play no part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

__all__ = [
    "ADDED", "IN_SCORES", "SEQ2SEQ_LAYERS", "STACKED", "WHOLE_MODELS", "WITH_POSITIONS", "ChoiceRecord",
    "PlaysNoPart", "Rarity", "choice",
    "norms_hidden", "not_by_turns", "not_rotary", "not_yarn",
]  # fmt: skip


class Rarity(IntEnum):
    """How common it is that code makes a choice in another way than the canonical one."""

    USUAL = 0
    """Any model may: tried first."""
    RARE = 1
    """Parts of newer models: tried last, where no known mistake gives the numbers."""
    READ = 2
    """With more values than can be tried: they are read off the arrays of an implementation."""


PlaysNoPart = Callable[[Any, str], bool]
"""Whether a choice changes nothing in a component of this name, whose variant has these other choices."""


@dataclass(frozen=True, slots=True)
class ChoiceRecord:
    """What is known of one choice besides its name, its type and its canonical value."""

    words: Mapping[Any, str]
    """What its values are called in a sentence."""
    in_use: tuple[Any, ...]
    """Common values of an open choice, the most frequent first."""
    tried: Mapping[str, int]
    """By topic, its place among the choices that a search for undeclared ones tries; empty: none looks for it."""
    rarity: Rarity
    rare: tuple[Any, ...]
    """Values that only newer models have, of a choice that is usual otherwise."""
    beyond: tuple[str, ...]
    """Components of other profiles than core in which it is looked for although it is not usual."""
    not_in: tuple[str, ...]
    """Components in which it is not looked for although their numbers show it."""
    needs: tuple[str, str, str] | None
    """The choice of the part that it is about, that part, and the line that declares one."""
    siblings: bool
    """Whether its values are one part in two widths: a mistake in one of them is made in the other."""
    free: bool
    """Whether either value is right where none is declared."""
    idle: PlaysNoPart

    @property
    def can_be_idle(self) -> bool:
        """Whether there are variants in which it changes nothing."""
        return self.idle is not _never


def _never(_variant: Any, _part: str) -> bool:
    return False


def choice(
    default: Any, *, words: Mapping[Any, str] | None = None, in_use: tuple[Any, ...] = (),
    tried: Mapping[str, int] | None = None, rarity: Rarity = Rarity.USUAL, rare: tuple[Any, ...] = (),
    beyond: tuple[str, ...] = (), not_in: tuple[str, ...] = (), needs: tuple[str, str, str] | None = None,
    siblings: bool = False, free: bool = False, idle: PlaysNoPart = _never,
) -> Any:  # fmt: skip
    """Return the field of a choice, with its canonical value and its record. See `ChoiceRecord`."""
    record = ChoiceRecord(words or {}, in_use, tried or {}, rarity, rare, beyond, not_in, needs, siblings, free, idle)
    return field(default=default, metadata={"choice": record})


SEQ2SEQ_LAYERS = ("CrossAttention", "EncoderLayer", "DecoderLayer")
STACKED = ("EncoderLayer", "DecoderLayer", "Transformer")
WHOLE_MODELS = frozenset({"TinyTransformerLM", "Transformer"})
"""Models of several layers that may share a table, with a head on top of them."""
WITH_POSITIONS = WHOLE_MODELS | {
    "PositionalEncoding", "BertEmbeddings", "BertModel", "BertForPreTraining", "PatchEmbedding", "VisionTransformer",
}  # fmt: skip
"""Components that add positions to their input, where the variant does that at all."""
ADDED = frozenset({"sinusoidal", "learned"})
"""Positions that are added."""
IN_SCORES = frozenset({"rotary", "alibi", "relative"})
"""Positions that act within attention."""


def norms_hidden(variant: Any, part: str) -> bool:
    """Whether attention has no norm, neither on queries and keys nor on a latent."""
    return part == "MultiHeadAttention" and variant.qk_norm == "none" and not variant.has_latent


def not_rotary(variant: Any, _part: str) -> bool:
    """Whether nothing is rotated."""
    return bool(variant.positions != "rotary")


def not_by_turns(variant: Any, part: str) -> bool:
    """Whether frequencies are not scaled by the turns that they make in a text."""
    return not_rotary(variant, part) or variant.rotary_scaling not in {"llama3", "yarn"}


def not_yarn(variant: Any, part: str) -> bool:
    """Whether frequencies are not scaled as YaRN does."""
    return not_rotary(variant, part) or variant.rotary_scaling != "yarn"
