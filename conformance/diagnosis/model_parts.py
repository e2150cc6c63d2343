"""The parts of a language model: those of its blocks, and those before and after the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.block_parts import NEGLIGIBLE_SHARE, Half, Stack
from conformkit.conformance.diagnosis.comparing import CLEARLY, PartTrial, Seen, distance, first, neutral_rows
from conformkit.conformance.engine.results import DifferingPart
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import first_position, positional_encoding

__all__ = ["model_part"]

_LOUD = 1e3
"""Factor that makes numbers so large that a norm's eps has no effect."""


def model_part(bench: PartTrial, draw: Draw) -> DifferingPart | None:
    """Return the first part of a language model that differs; None where blocks are not arranged as `Stack` assumes."""
    if bench.variant.placement not in {"pre", "post"}:
        return None
    return _Model(bench, draw).part()


class _Model(Stack):
    """A model: the embedding sets the residual stream; the last norm and the head read it."""

    def _blocks(self) -> list[str]:
        return [f"blocks.{i}." for i in range(self.bench.instance.sizes["num_layers"])]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Make embedding plus position a neutral row at each position; each id occurs at one position."""
        ids, width = self.bench.inputs, self.bench.instance.sizes["d_model"]
        rows = neutral_rows(self._draw, len(ids), ids.shape[1], width)
        variant = self.bench.variant
        first_number = first_position(variant, {})
        rows = rows - positional_encoding(self.bench.base, np.zeros_like(rows), variant=variant, first=first_number)
        table = self.bench.base["embedding.weight"].copy()
        table[ids] = rows / np.sqrt(width) if self.bench.variant.embedding_scale else rows
        return {"embedding.weight": table, **self.bench.plain("embedding_norm")}, ids

    def _scaled_stream(self, full: Seen) -> DifferingPart | None:
        """Without positions, the wrong scale of the residual stream only shows once something is added to it."""
        scaled = not self.bench.variant.embedding_scale
        if self.bench.off(full, embedding_scale=scaled) > CLEARLY * full.error:
            return None
        factor = "a factor √d_model" if scaled else "no factor √d_model"
        return first("embedding", f"the output is off by {full.largest:.3g}; it is right with {factor}")

    def _other_input(self, half: Half, others: Sequence[Half], alone: Seen, told: str) -> DifferingPart | None:
        """Recognize a block that uses the weights of another, and a first block that reads no positions."""
        enough = max(self.bench.tolerance, CLEARLY * alone.error)
        places = [block for block in self._blocks() if block != half.block]
        for chosen in (*([place] for place in places), places):
            if chosen and self.bench.off(alone, *(self._moved(half.block, place) for place in chosen)) <= enough:
                names = " and ".join(place.rstrip(".") for place in chosen)
                return first(chosen[0].rstrip("."), f"{told}; {names} uses the weights of {half.block.rstrip('.')}")
        if not (self.pre and half is self.halves[0] and self._adds_positions()):
            return None
        loud = [self.bench.times(_LOUD, "embedding.", half.last()), *self._silent(others)]
        if self.bench.see(*loud).error <= CLEARLY * alone.error:
            return first("positions", f"{told}, but right if the embeddings are so large that positions hardly matter")
        return None

    def _adds_positions(self) -> bool:
        return self.bench.variant.positions in {"sinusoidal", "learned"}

    def _moved(self, source: str, place: str) -> dict[str, Array]:
        """Return the weights of one block as those of another."""
        return {place + n.removeprefix(source): w for n, w in self.bench.base.items() if n.startswith(source)}

    def _around(self, silent: Seen) -> DifferingPart:
        """All blocks are off and the output still differs: embedding, positions, norms, head, or residual path."""
        sentence = f"with every block switched off (weights of 0) the logits are still off by {silent.largest:.3g}"
        if self.pre and (half := self._acting(silent)) is not None:
            path = f"{half.block}residual"
            return DifferingPart(path, f"{sentence}: {half.norm} is on the residual path; move it inside the branch")
        changed, ids = self._neutral()
        quiet = [*self._silent(self.halves), self.bench.plain(*self._inner())]
        seen = self.bench.see(*quiet, changed, inputs=ids)
        if self.bench.agrees(seen):
            return self._inside(sentence, changed, max(self.bench.tolerance, NEGLIGIBLE_SHARE * silent.error))
        last = self._last()
        if self._lost(last, seen):
            return DifferingPart("blocks.0.residual", f"{sentence}: the embeddings do not get through the blocks")
        if (found := self._beyond(seen, quiet, sentence)) is not None:
            return found
        if last is not None and self._explained(last, quiet, CLEARLY * silent.error):
            return self._loud(silent) or first(last, f"{sentence}, but right on rows that a norm does not change")
        return self._before_the_blocks(sentence, quiet)

    def _loud(self, silent: Seen) -> DifferingPart | None:
        """Distinguish a wrong eps from a wrong scale of the stream: eps has no effect on 1000 times larger numbers."""
        louder = [self.bench.times(_LOUD, "embedding.", half.last()) for half in self.halves]
        base = {name: w for change in louder for name, w in change.items()}
        loud = _Model(replace(self.bench, base={**self.bench.base, **base}), self._draw)
        before = loud.bench.see(*loud._silent(loud.halves))
        if before.error > NEGLIGIBLE_SHARE * silent.error:
            return None
        found = loud._first_half(before, any_size=True)
        return found if found is not None and found.path.endswith("residual") else None

    def _before_the_blocks(self, told: str, quiet: Sequence[dict[str, Array]]) -> DifferingPart:
        """Set the embedding rows of all used ids to 0, so that only positions remain."""
        table = self.bench.base["embedding.weight"].copy()
        table[self.bench.inputs] = 0.0
        bare = self.bench.see(*quiet, {"embedding.weight": table if self.bench.variant.tied else 0.0 * table})
        if self.bench.agrees(bare):
            seen = self.bench.see(*quiet)
            factor, left = self.bench.factor(seen, ["embedding.weight"])
            if not self.bench.variant.tied and left <= CLEARLY * seen.error:
                return first("embedding", f"{told}; they are those of embeddings multiplied by {factor:.4g}")
            return first("embedding", f"{told}; they are right once the rows of the embedding are 0")
        alike = {"embedding.weight": np.broadcast_to(self.bench.base["embedding.weight"][0], table.shape)}
        if self.bench.variant.tied and self.bench.agrees(self.bench.see(*quiet, alike)):
            return first("embedding", f"{told}; they are right once all rows of the embedding are equal")
        return first("positions", f"{told}, and by {bare.largest:.3g} if the rows of the embedding are 0")

    def _beyond(self, seen: Seen, quiet: Sequence[dict[str, Array]], told: str) -> DifferingPart | None:
        """Recognize a difference that arises after the last norm."""
        if _of_the_head(self.bench, seen, self._last()):
            return first("head", f"{told}, and the difference arises after the last norm")
        if self._displaced(seen, quiet):
            return first("output", f"{told}, and the rows of logits are correct ones, but of other positions")
        return None

    def _displaced(self, seen: Seen, quiet: Sequence[dict[str, Array]]) -> bool:
        """Whether rows of logits belong to other positions; without positions, rows of other ids look the same."""
        enough = max(self.bench.tolerance, 1e-7) * max(float(np.abs(seen.want).max()), 1e-30)
        got, want = (a.reshape(-1, a.shape[-1]) for a in (seen.got, seen.want))  # (B·T, V)
        apart = np.abs(got[:, None] - want[None]).max(axis=-1)  # (B·T, B·T)
        moved = (apart.min(axis=1) <= enough) & (apart.diagonal() > enough)
        if 2 * moved.sum() < len(got):
            return False
        one = np.full_like(self.bench.inputs, self.bench.inputs[0, 0])
        return self._adds_positions() or self.bench.agrees(self.bench.see(*quiet, inputs=one))

    def _sized_rows(self, half: Half, others: Sequence[Half], told: str, enough: float) -> DifferingPart | None:
        """Recognize embeddings that are scaled one by one: if all have the same norm, one factor explains them."""
        changed, inputs = self._neutral()
        seen = self.bench.see(*self._silent(others), changed, inputs=inputs)
        if self.bench.factor(seen, self.bench.names(half.last()))[1] > enough:
            return None
        return first("embedding", f"{told}; a multiple of embeddings that have equal norms makes it right")

    def _lost(self, norm: str | None, seen: Seen) -> bool:
        """Whether the last norm, or the head, reads only zeros."""
        if norm is not None:
            return super()._lost(norm, seen)
        head = "embedding.weight" if self.bench.variant.tied else "head.weight"
        return self.bench.off(seen, self.bench.zeros("head.weight", head)) <= self.bench.tolerance

    def _acting(self, silent: Seen) -> Half | None:
        """Return the first half whose norm has an effect although the half is off."""
        quiet = self._silent(self.halves)
        enough = max(self.bench.tolerance, CLEARLY * silent.error)
        plain = self.bench.plain(*(half.norm for half in self.halves))
        if distance(self.bench.see(*quiet, plain).got, silent.got) <= enough:
            return None
        each = ((half, self.bench.see(*quiet, self.bench.plain(half.norm))) for half in self.halves)
        return next((half for half, seen in each if distance(seen.got, silent.got) > enough), self.halves[0])

    def _inside(self, told: str, neutral: dict[str, Array], enough: float) -> DifferingPart:
        """Inner norms with γ = 1, β = 0 agree on neutral rows: set γ and β of one after another, then use any rows."""
        silent = self._silent(self.halves)
        passed = [n for n in self._inner() if n == "embedding_norm" or not self.pre]
        for norm in passed:
            others = [other for other in passed if other != norm]
            changed = {n: w for n, w in neutral.items() if not n.startswith(norm)}
            if self.bench.see(*silent, self.bench.plain(*others), changed).error > enough:
                return first(norm, f"{told}, but right while its γ is 1 and its β is 0")
        earliest = (*passed, self._last() or "embedding")[0]
        return first(earliest, f"{told}, but right on rows that a norm does not change")

    def _inner(self) -> list[str]:
        """Return the norms before the last one, on the residual path or beside it, in order of depth."""
        found = ["embedding_norm"] if self.bench.variant.embedding_norm else []
        found += [half.norm for half in self.halves]
        return [norm for norm in found if norm != self._last()]

    def _last(self) -> str | None:
        """Return the norm before the head, if there is one."""
        if self.bench.variant.final_norm:
            return "norm"
        return None if self.pre else self.halves[-1].norm


def _of_the_head(bench: PartTrial, seen: Seen, last: str | None) -> bool:
    """Whether the head explains the logits: its matrix cannot give them, or they are a multiple of the right ones."""
    head = seen.weights["embedding.weight" if bench.variant.tied else "head.weight"]  # (V, D)
    enough = max(bench.tolerance, 1e-7) * max(float(np.abs(seen.want).max()), 1e-30)
    got, want = (a.reshape(-1, a.shape[-1]) for a in (seen.got, seen.want))  # (B·T, V)
    bias = seen.weights.get("head.bias", np.zeros(len(head)))
    if not np.isfinite(got).all() or np.abs(_left_by(head, (got - bias).T)).max() > enough:
        return True
    if last is None or f"{last}.bias" in seen.weights:  # a norm would not have changed its β
        got, want = got - bias, want - bias
    elif not bench.variant.head_bias:
        return False
    return bool(np.abs(_left_by(want.reshape(-1, 1), got.reshape(-1, 1))).max() <= enough)


def _left_by(matrix: Array, columns: Array) -> Array:
    """Return the remainder of the columns that no combination of the matrix's columns gives."""
    return np.asarray(columns - matrix @ np.linalg.lstsq(matrix, columns, rcond=None)[0])
