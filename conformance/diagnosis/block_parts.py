"""The parts of a block, switched on one after another; what a model does otherwise is in model_parts.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.comparing import CLEARLY, Bench, Seen, distance, first, neutral_rows
from conformkit.conformance.engine.results import Part
from conformkit.spec.arrays import Array

__all__ = ["SLIGHT", "Half", "Stack", "block_part"]

_LARGER = 2.5
"""A norm whose output is so much larger is as right as before."""
SLIGHT = 1e-3
"""A difference of silent parts so much smaller than the whole one's is not what makes it."""


def block_part(bench: Bench, draw: Draw) -> Part | None:
    """Return the first part of a block that differs."""
    return Stack(bench, draw).part()


@dataclass(frozen=True, slots=True)
class Half:
    """Attention or the feed-forward network of a block, and the norm that goes with it."""

    bench: Bench
    block: str
    """The prefix of its block's parameters."""
    name: str

    @property
    def path(self) -> str:
        """The prefix of its parameters, without the dot."""
        return self.block + self.name

    @property
    def norm(self) -> str:
        """The norm before it, or in `post` after it."""
        return self.block + ("norm1" if self.name == "attention" else "norm2")

    def last(self) -> str:
        """Return the prefix of the weights with which it ends; without an output projection those are v's."""
        name = "down." if self.name == "feed_forward" else "out." if self.bench.variant.output_projection else "v."
        return f"{self.path}.{name}"

    def silent(self) -> dict[str, Array]:
        """Return weights with which it gives 0, also where some of them are not used."""
        return self.bench.zeros(f"{self.path}.")


class Stack:
    """A block: halves in the order of depth, and a stream that can be chosen."""

    def __init__(self, bench: Bench, draw: Draw) -> None:
        self.bench, self._draw = bench, draw
        self.halves = [Half(bench, block, name) for block in self._blocks() for name in ("attention", "feed_forward")]
        self.pre = bench.variant.placement == "pre"

    def part(self) -> Part | None:
        """Compare the whole, then with everything silent, then with one half after the other."""
        full = self.bench.see()
        if self.bench.agrees(full) or (full.got != self.bench.see().got).any():
            return None
        silent = self.bench.see(*self._silent(self.halves))
        if self.bench.agrees(silent):
            return self._first_half(silent)
        if silent.error < SLIGHT * full.error:
            return self._scaled_stream(full) or self._first_half(silent)
        return self._around(silent)

    def _first_half(self, before: Seen, *, any_size: bool = False) -> Part | None:
        """Switch on one half after the other, up from what may be off slightly already.

        With `any_size`, the size of the stream is what is asked about.
        """
        any_size = any_size or not self.bench.agrees(before)
        allowed = max(self.bench.tolerance, 10 * before.error)
        for number, half in enumerate(self.halves):
            seen = self.bench.see(*self._silent(self.halves[number + 1 :]))
            if seen.error > allowed:
                told = f"silent up to there the output is off by {before.largest:.1g}, with it by {seen.largest:.3g}"
                return self._within(half, told, allowed, any_size=any_size)
            before = seen
        return None

    def _within(self, half: Half, told: str, allowed: float, *, any_size: bool) -> Part:
        """Tell a half from its norm, from the residual path, and from what only shows where others are on."""
        others = [other for other in self.halves if other is not half]
        alone = self.bench.see(*self._silent(others))
        if alone.error <= allowed:
            return self._together(half, told, allowed)
        if any_size and self.bench.factor(alone, self.bench.names(half.last()))[1] < CLEARLY * alone.error:
            return Part(f"{half.block}residual", f"{told}, and by nothing next to a multiple of the residual path")
        if any_size and (found := self._sized_rows(half, others, told, CLEARLY * alone.error)) is not None:
            return found
        if (found := self._wired(half, others, alone, told)) is not None:
            return found
        if self.pre and self._is_the_norm(half, others, alone):
            return first(half.norm, f"{told}, but not on rows that a norm leaves as they are")
        return self._other_input(half, others, alone, told) or first(half.path, told)

    def _wired(self, half: Half, others: Sequence[Half], alone: Seen, told: str) -> Part | None:
        """Recognize what gives nothing of its own, or only through another half."""
        silent = self.bench.see(*self._silent(self.halves))
        if distance(alone.got, silent.got) > self.bench.tolerance:
            return None
        partner = next(other for other in others if other.block == half.block)
        elsewhere = [other for other in others if other is not partner]
        both, other = (self.bench.see(*self._silent(quiet)) for quiet in (elsewhere, [*elsewhere, half]))
        if distance(both.got, other.got) > self.bench.tolerance:
            return Part(f"{half.block}residual", f"{told}: what {half.name} gives only arrives through {partner.name}")
        if half.block and distance(other.got, silent.got) <= self.bench.tolerance:
            return first(half.block.rstrip("."), f"{told}: nothing that the block gives arrives")
        return first(half.path, f"{told}: nothing that it gives arrives")

    def _together(self, half: Half, told: str, allowed: float) -> Part:
        rest = [other for other in self.halves if other.block != half.block]
        told = f"each part alone agrees, but not {half.path} after others: {told}"
        if rest and self.bench.see(*self._silent(rest)).error <= allowed:
            return Part("blocks", f"{told}; perhaps the blocks run in another order")
        return Part(f"{half.block}residual", f"{told}; perhaps their order, or what one reads, is another one")

    def _is_the_norm(self, half: Half, others: Sequence[Half], alone: Seen) -> bool:
        """Whether another norm has an effect on this half, or neutral rows explain what it gives but for γ or β."""
        silent = self._silent(others)
        other_norms = self.bench.plain(*(other.norm for other in others))
        if distance(self.bench.see(*silent, other_norms).got, alone.got) > self.bench.tolerance:
            return True
        return self._explained(half.norm, silent, CLEARLY * alone.error)

    def _explained(self, norm: str, changes: Sequence[dict[str, Array]], enough: float) -> bool:
        """Whether a norm that scales, or lacks γ or β, explains what comes of neutral rows."""
        enough = max(self.bench.tolerance, enough)
        changed, inputs = self._neutral()
        seen = self.bench.see(*changes, changed, inputs=inputs)
        if seen.error <= enough:  # and also where the norm gives larger numbers, which something may cut
            larger = self.bench.times(_LARGER, f"{norm}.weight")
            return self.bench.see(*changes, changed, larger, inputs=inputs).error <= _LARGER * enough
        if any(self.bench.off(seen, change) <= enough for change in _affine(seen, norm)):
            return True
        if self.bench.factor(seen, [f"{norm}.weight"])[1] <= enough:
            return True
        seen = self.bench.see(*changes, changed, self.bench.plain(norm), inputs=inputs)
        return self.bench.factor(seen, [f"{norm}.weight"])[1] <= enough

    def _lost(self, norm: str | None, seen: Seen) -> bool:
        """Whether the norm reads nothing but zeros."""
        return norm is not None and self.bench.off(seen, self.bench.zeros(f"{norm}.weight")) <= self.bench.tolerance

    def _silent(self, halves: Sequence[Half]) -> list[dict[str, Array]]:
        return [half.silent() for half in halves]

    # -- what a block and a model do differently -----------------------------------------------------------------

    def _blocks(self) -> list[str]:
        return [""]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Return weights and inputs with which the stream has neutral rows."""
        batch, length, width = self.bench.inputs.shape
        return {}, neutral_rows(self._draw, batch, length, width)

    def _scaled_stream(self, _full: Seen) -> Part | None:
        """Recognize a stream of another size, where that is told from other causes."""
        return None

    def _sized_rows(self, _half: Half, _others: Sequence[Half], _told: str, _enough: float) -> Part | None:
        """Recognize rows that enter with another size each."""
        return None

    def _other_input(self, _half: Half, _others: Sequence[Half], _alone: Seen, _told: str) -> Part | None:
        """Recognize a half that reads something else, or is in another place as well."""
        return None

    def _around(self, silent: Seen) -> Part:
        """Both halves are silent, and yet it differs: the norms after the residual sums, or the sums."""
        told = f"with attention and feed-forward silent the output is off by {silent.largest:.3g}"
        if self.pre:
            return Part("residual", f"{told}: the input itself is to come out, the residual path differs")
        quiet = [*self._silent(self.halves), self.bench.plain("norm1")]
        changed, inputs = self._neutral()
        seen = self.bench.see(*quiet, changed, inputs=inputs)
        if self.bench.agrees(seen):
            return first("norm1", f"{told}, and by nothing on rows that a norm leaves as they are")
        if not self._lost("norm2", seen) and self._explained("norm2", quiet, CLEARLY * silent.error):
            return first("norm2", f"{told}, also where norm1 has nothing to do")
        return Part("residual", f"{told}, and neither norm alone explains it: the residual path differs")


def _affine(seen: Seen, norm: str) -> Iterator[dict[str, Array]]:
    """Yield what common mistakes make of a norm's γ and β."""
    gamma, beta = f"{norm}.weight", f"{norm}.bias"
    old = seen.weights[gamma]
    ones = np.ones_like(old)
    yield from ({gamma: other} for other in (ones, old + 1.0))
    if beta in seen.weights:
        shift = seen.weights[beta]
        yield from ({gamma: g, beta: b} for g in (old, ones) for b in (np.zeros_like(shift), old * shift, shift))
