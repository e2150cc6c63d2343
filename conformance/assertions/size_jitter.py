"""Small sizes that differ from seed to seed: those that a test asks for, a little larger.

Within one clause a size is always shifted alike: what a test makes equal stays equal, and what it makes larger stays
larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.assertions.sizes import Integers

__all__ = ["AS_ASKED", "SizeJitter", "size_jitter"]

_SHIFTED = ("d_ff", "vocab_size", "src_vocab_size", "tgt_vocab_size", "block_size", "max_len")
_MAX_ADDED = 3
_SMALLEST_CHANGED = 3
"""Sizes below it are asked for because they are the smallest."""
_LARGEST_CHANGED = 40
"""So are sizes above it, as the largest."""


@dataclass(frozen=True, slots=True)
class SizeJitter:
    """How much is added to sizes that a test asks for."""

    added: Mapping[str, int]
    tokens: int = 0

    def sizes(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return constructor arguments, shifted. A width stays a multiple of the number of heads."""
        found = dict(wanted)
        for name in self.added.keys() & wanted.keys():
            found[name] = _shifted(wanted[name], self.added[name])
        heads, width = wanted.get("num_heads") or 1, wanted.get("d_model")
        if width and width % heads == 0:
            found["d_model"] = heads * _shifted(width // heads, self.added.get("head_width", 0))
        return found

    def length(self, wanted: int) -> int:
        """Return a number of positions, shifted."""
        return int(_shifted(wanted, self.tokens))


AS_ASKED = SizeJitter({})
"""Adds nothing."""


def size_jitter(draw: Integers) -> SizeJitter:
    """Draw how much is added to each size. A table of positions grows as sequences do."""
    added = {name: draw.integer(0, _MAX_ADDED) for name in _SHIFTED}
    positions = draw.integer(0, 2)
    added |= {"block_size": positions, "max_len": positions, "head_width": 2 * draw.integer(0, 1)}
    added |= {"num_classes": draw.integer(0, _MAX_ADDED), "image_size": 2 * draw.integer(0, 1)}
    return SizeJitter(added, positions)


def _shifted(size: Any, by: int) -> Any:
    return size + by if isinstance(size, int) and _SMALLEST_CHANGED <= size <= _LARGEST_CHANGED else size
