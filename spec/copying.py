"""Copy and reverse: the smallest tasks that need all of an encoder-decoder.

    copy: y = [s_1 … s_n]        reverse: y = [s_n … s_1]        s_i uniform over the ids from 3

Sources are new in every batch, so that nothing can be memorized, and differ in length, so that there is padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED

__all__ = ["BEGIN", "COPY", "END", "PAD", "REVERSE", "Examples", "Task"]

PAD, BEGIN, END = 0, 1, 2
Random = Any
"""`numpy.random.Generator`."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Sources (B, S), targets shifted right (B, T), and the ids to predict (B, T), IGNORED where there are none."""

    src: Array
    tgt: Array
    wanted: Array


@dataclass(frozen=True, slots=True)
class Task:
    """The expected target of a source: the same ids, in the same order or reversed, and then the end id."""

    reverse: bool
    size: int = 13
    shortest: int = 4
    longest: int = 8

    @property
    def name(self) -> str:
        """What it is called in reports and portions."""
        return "reverse" if self.reverse else "copy"

    def draw(self, random: Random, rows: int) -> Examples:
        """Draw this number of sources and their targets, padded to the longest."""
        lengths = random.integers(self.shortest, self.longest + 1, (rows, 1))  # (B, 1)
        places = np.arange(self.longest)  # (S,)
        src = np.where(places < lengths, random.integers(END + 1, self.size, (rows, self.longest)), PAD)
        taken = np.where(places < lengths, lengths - 1 - places, places) if self.reverse else places[None]
        text = np.take_along_axis(src, np.broadcast_to(taken, src.shape), axis=1)  # (B, S)
        wanted = np.concatenate([text, np.full((rows, 1), PAD)], axis=1)  # (B, S + 1)
        np.put_along_axis(wanted, lengths, END, axis=1)
        tgt = np.concatenate([np.full((rows, 1), BEGIN), text], axis=1)  # (B, S + 1)
        return Examples(src, tgt, np.where(np.arange(self.longest + 1) <= lengths, wanted, IGNORED))


COPY, REVERSE = Task(reverse=False), Task(reverse=True, size=9, shortest=3, longest=5)
"""Reversing takes longer to learn: shorter sources of fewer symbols tell as well whether it was."""
