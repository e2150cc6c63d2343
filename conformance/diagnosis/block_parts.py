"""The parts of a block, switched on one after another; model_parts.py has what differs in a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.comparing import CLEARLY, PartTrial, Seen, distance, first, neutral_rows
from conformkit.conformance.engine.results import DifferingPart
from conformkit.spec.arrays import Array

__all__ = ["NEGLIGIBLE_SHARE", "Half", "Stack", "block_part"]

_LARGER = 2.5
"""Factor for a norm's γ in a check: a correct norm stays correct with it."""
NEGLIGIBLE_SHARE = 1e-3
"""If the error with all parts off is less than this share of the whole error, it is not the cause."""


def block_part(bench: PartTrial, draw: Draw) -> DifferingPart | None:
    """Return the first part of a block that differs; None where it is not arranged as `Stack` assumes."""
    if bench.variant.placement not in {"pre", "post"}:
        return None
    return Stack(bench, draw).part()


@dataclass(frozen=True, slots=True)
class Half:
    """Attention or the feed-forward network of a block, with its norm."""

    bench: PartTrial
    block: str
    """Prefix of its block's parameters."""
    name: str

    @property
    def path(self) -> str:
        """Prefix of its parameters, without the dot."""
        return self.block + self.name

    @property
    def norm(self) -> str:
        """The norm before it, or after it with `post` placement."""
        return self.block + ("norm1" if self.name == "attention" else "norm2")

    def last(self) -> str:
        """Return the prefix of its last weights; without an output projection these are v's."""
        name = "down." if self.name == "feed_forward" else "out." if self.bench.variant.output_projection else "v."
        return f"{self.path}.{name}"

    def silent(self) -> dict[str, Array]:
        """Return weights with which its output is 0, even if some of them are not used."""
        return self.bench.zeros(f"{self.path}.")


class Stack:
    """A block: its halves in order of depth, and a residual stream whose values we choose."""

    def __init__(self, bench: PartTrial, draw: Draw) -> None:
        self.bench, self._draw = bench, draw
        self.halves = [Half(bench, block, name) for block in self._blocks() for name in ("attention", "feed_forward")]
        self.pre = bench.variant.placement == "pre"

    def part(self) -> DifferingPart | None:
        """Compare the whole, then with all halves off, then switch on one half after another."""
        full = self.bench.see()
        if self.bench.agrees(full) or (full.got != self.bench.see().got).any():
            return None
        silent = self.bench.see(*self._silent(self.halves))
        if self.bench.agrees(silent):
            return self._first_half(silent)
        if silent.error < NEGLIGIBLE_SHARE * full.error:
            return self._scaled_stream(full) or self._first_half(silent)
        return self._around(silent)

    def _first_half(self, before: Seen, *, any_size: bool = False) -> DifferingPart | None:
        """Switch on one half after another; the output may already be slightly off before the first.

        With `any_size`, also look for a residual stream of the wrong scale.
        """
        any_size = any_size or not self.bench.agrees(before)
        allowed = max(self.bench.tolerance, 10 * before.error)
        for number, half in enumerate(self.halves):
            seen = self.bench.see(*self._silent(self.halves[number + 1 :]))
            if seen.error > allowed:
                start = "right" if self.bench.agrees(before) else f"off by {before.largest:.1g}"
                sentence = f"without {half.path} the output is {start}; with it, off by {seen.largest:.3g}"
                return self._within(half, sentence, allowed, any_size=any_size)
            before = seen
        return None

    def _within(self, half: Half, told: str, allowed: float, *, any_size: bool) -> DifferingPart:
        """Decide between a half, its norm, the residual path, and an error that needs other halves to be on."""
        others = [other for other in self.halves if other is not half]
        alone = self.bench.see(*self._silent(others))
        if alone.error <= allowed:
            return self._together(half, told, allowed)
        if any_size and self.bench.factor(alone, self.bench.names(half.last()))[1] < CLEARLY * alone.error:
            return DifferingPart(
                f"{half.block}residual", f"{told}; multiplying the residual path by a constant makes it right"
            )
        if any_size and (found := self._sized_rows(half, others, told, CLEARLY * alone.error)) is not None:
            return found
        if (found := self._wired(half, others, alone, told)) is not None:
            return found
        if self.pre and self._is_the_norm(half, others, alone):
            return first(half.norm, f"{told}, but right on rows that a norm does not change")
        return self._other_input(half, others, alone, told) or first(half.path, told)

    def _wired(self, half: Half, others: Sequence[Half], alone: Seen, told: str) -> DifferingPart | None:
        """Recognize a half whose output has no effect, or only through the other half."""
        silent = self.bench.see(*self._silent(self.halves))
        if distance(alone.got, silent.got) > self.bench.tolerance:
            return None
        partner = next(other for other in others if other.block == half.block)
        elsewhere = [other for other in others if other is not partner]
        both, other = (self.bench.see(*self._silent(quiet)) for quiet in (elsewhere, [*elsewhere, half]))
        if distance(both.got, other.got) > self.bench.tolerance:
            return DifferingPart(
                f"{half.block}residual", f"{told}; the output of {half.name} only arrives through {partner.name}"
            )
        if half.block and distance(other.got, silent.got) <= self.bench.tolerance:
            return first(half.block.rstrip("."), f"{told}; the block's output has no effect")
        return first(half.path, f"{told}; its output has no effect")

    def _together(self, half: Half, sentence: str, allowed: float) -> DifferingPart:
        rest = [other for other in self.halves if other.block != half.block]
        sentence = f"each part alone is right, but not {half.path} after others: {sentence}"
        if rest and self.bench.see(*self._silent(rest)).error <= allowed:
            return DifferingPart("blocks", f"{sentence}; perhaps the blocks run in another order")
        return DifferingPart(
            f"{half.block}residual",
            f"{sentence}; perhaps the parts are in another order, or one reads a different input",
        )

    def _is_the_norm(self, half: Half, others: Sequence[Half], alone: Seen) -> bool:
        """Whether another norm affects this half, or only γ or β is wrong: neutral rows explain the output."""
        silent = self._silent(others)
        other_norms = self.bench.plain(*(other.norm for other in others))
        if distance(self.bench.see(*silent, other_norms).got, alone.got) > self.bench.tolerance:
            return True
        return self._explained(half.norm, silent, CLEARLY * alone.error)

    def _explained(self, norm: str, changes: Sequence[dict[str, Array]], enough: float) -> bool:
        """Whether a norm that scales, or lacks γ or β, explains the output for neutral rows."""
        enough = max(self.bench.tolerance, enough)
        changed, inputs = self._neutral()
        seen = self.bench.see(*changes, changed, inputs=inputs)
        if seen.error <= enough:  # and also with a larger output of the norm, which something may clip
            larger = self.bench.times(_LARGER, f"{norm}.weight")
            return self.bench.see(*changes, changed, larger, inputs=inputs).error <= _LARGER * enough
        if any(self.bench.off(seen, change) <= enough for change in _affine(seen, norm)):
            return True
        if self.bench.factor(seen, [f"{norm}.weight"])[1] <= enough:
            return True
        seen = self.bench.see(*changes, changed, self.bench.plain(norm), inputs=inputs)
        return self.bench.factor(seen, [f"{norm}.weight"])[1] <= enough

    def _lost(self, norm: str | None, seen: Seen) -> bool:
        """Whether the norm reads only zeros."""
        return norm is not None and self.bench.off(seen, self.bench.zeros(f"{norm}.weight")) <= self.bench.tolerance

    def _silent(self, halves: Sequence[Half]) -> list[dict[str, Array]]:
        return [half.silent() for half in halves]

    # -- where a block and a model differ ------------------------------------------------------------------------

    def _blocks(self) -> list[str]:
        return [""]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Return weights and inputs for which the residual stream has neutral rows."""
        batch, length, width = self.bench.inputs.shape
        return {}, neutral_rows(self._draw, batch, length, width)

    def _scaled_stream(self, _full: Seen) -> DifferingPart | None:
        """Recognize a residual stream of the wrong scale, if it can be distinguished from other causes."""
        return None

    def _sized_rows(self, _half: Half, _others: Sequence[Half], _told: str, _enough: float) -> DifferingPart | None:
        """Recognize input rows that are each scaled differently."""
        return None

    def _other_input(self, _half: Half, _others: Sequence[Half], _alone: Seen, _told: str) -> DifferingPart | None:
        """Recognize a half that reads the wrong input, or whose weights also work elsewhere."""
        return None

    def _around(self, silent: Seen) -> DifferingPart:
        """Both halves are off and the output still differs: find a norm after a residual sum, or the sum itself."""
        sentence = (
            f"with attention and feed-forward switched off (weights of 0) the output is off by {silent.largest:.3g}"
        )
        if self.pre:
            return DifferingPart(
                "residual", f"{sentence}: the output should be the input itself, so the residual path differs"
            )
        quiet = [*self._silent(self.halves), self.bench.plain("norm1")]
        changed, inputs = self._neutral()
        seen = self.bench.see(*quiet, changed, inputs=inputs)
        if self.bench.agrees(seen):
            return first("norm1", f"{sentence}, but right on rows that a norm does not change")
        if not self._lost("norm2", seen) and self._explained("norm2", quiet, CLEARLY * silent.error):
            return first("norm2", f"{sentence}, also where norm1 changes nothing")
        return DifferingPart("residual", f"{sentence}, and neither norm alone explains it: the residual path differs")


def _affine(seen: Seen, norm: str) -> Iterator[dict[str, Array]]:
    """Yield γ and β of a norm as common mistakes would apply them."""
    gamma, beta = f"{norm}.weight", f"{norm}.bias"
    if gamma not in seen.weights:
        return
    old = seen.weights[gamma]
    ones = np.ones_like(old)
    yield from ({gamma: other} for other in (ones, old + 1.0))
    if beta in seen.weights:
        shift = seen.weights[beta]
        yield from ({gamma: g, beta: b} for g in (old, ones) for b in (np.zeros_like(shift), old * shift, shift))
