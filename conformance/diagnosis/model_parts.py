"""The parts of a language model: those of its blocks, and what is before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.block_parts import SLIGHT, Half, Stack
from conformkit.conformance.diagnosis.comparing import CLEARLY, Bench, Seen, distance, first, neutral_rows
from conformkit.conformance.engine.results import Part
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import positional_encoding

__all__ = ["model_part"]

_LOUD = 1e3
"""So much larger than what eps can touch."""


def model_part(bench: Bench, draw: Draw) -> Part | None:
    """Return the first part of a language model that differs."""
    return _Model(bench, draw).part()


class _Model(Stack):
    """A model: the stream is chosen by the embedding, and read through the last norm and the head."""

    def _blocks(self) -> list[str]:
        return [f"blocks.{i}." for i in range(self.bench.instance.sizes["num_layers"])]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Let embedding plus position be a neutral row at each place; each id stands at one."""
        ids, width = self.bench.inputs, self.bench.instance.sizes["d_model"]
        rows = neutral_rows(self._draw, len(ids), ids.shape[1], width)
        rows = rows - positional_encoding(self.bench.base, np.zeros_like(rows), variant=self.bench.variant)
        table = self.bench.base["embedding.weight"].copy()
        table[ids] = rows / np.sqrt(width) if self.bench.variant.embedding_scale else rows
        return {"embedding.weight": table, **self.bench.plain("embedding_norm")}, ids

    def _scaled_stream(self, full: Seen) -> Part | None:
        """Without positions, a stream that is too large only shows next to what is added to it."""
        scaled = not self.bench.variant.embedding_scale
        if self.bench.off(full, embedding_scale=scaled) > CLEARLY * full.error:
            return None
        factor = "a factor √d_model" if scaled else "no factor √d_model"
        return first("embedding", f"the output is off by {full.largest:.3g}, and by nothing with {factor}")

    def _other_input(self, half: Half, others: Sequence[Half], alone: Seen, told: str) -> Part | None:
        """Recognize weights of one block at work in another, and a first block that reads no positions."""
        enough = max(self.bench.tolerance, CLEARLY * alone.error)
        places = [block for block in self._blocks() if block != half.block]
        for chosen in (*([place] for place in places), places):
            if chosen and self.bench.off(alone, *(self._moved(half.block, place) for place in chosen)) <= enough:
                names = " and ".join(place.rstrip(".") for place in chosen)
                return first(
                    chosen[0].rstrip("."), f"{told}: {names} works with the weights of {half.block.rstrip('.')}"
                )
        if not (self.pre and half is self.halves[0] and self._adds_positions()):
            return None
        loud = [self.bench.times(_LOUD, "embedding.", half.last()), *self._silent(others)]
        if self.bench.see(*loud).error <= CLEARLY * alone.error:
            return first(
                "positions", f"{told}, and by nothing where embeddings are so large that positions hardly count"
            )
        return None

    def _adds_positions(self) -> bool:
        return self.bench.variant.positions in {"sinusoidal", "learned"}

    def _moved(self, source: str, place: str) -> dict[str, Array]:
        """Return the weights of one block as those of another."""
        return {place + n.removeprefix(source): w for n, w in self.bench.base.items() if n.startswith(source)}

    def _around(self, silent: Seen) -> Part:
        """All blocks are silent, and yet it differs: embedding, positions, norms, the head, or the residual path."""
        told = f"with every block silent the output is off by {silent.largest:.3g}"
        if self.pre and (half := self._acting(silent)) is not None:
            path = f"{half.block}residual"
            return Part(path, f"{told}: the γ or β of {half.norm} act on the stream, which has to pass it by")
        changed, ids = self._neutral()
        quiet = [*self._silent(self.halves), self.bench.plain(*self._inner())]
        seen = self.bench.see(*quiet, changed, inputs=ids)
        if self.bench.agrees(seen):
            return self._inside(told, changed, max(self.bench.tolerance, SLIGHT * silent.error))
        last = self._last()
        if self._lost(last, seen):
            return Part("blocks.0.residual", f"{told}: nothing of the embeddings gets through the blocks")
        if (found := self._beyond(seen, quiet, told)) is not None:
            return found
        if last is not None and self._explained(last, quiet, CLEARLY * silent.error):
            return self._loud(silent) or first(last, f"{told}, but not on rows that a norm leaves as they are")
        return self._before_the_blocks(told, quiet)

    def _loud(self, silent: Seen) -> Part | None:
        """Tell another eps from a stream of another size: where all is 1000 times as large, only the latter is left."""
        louder = [self.bench.times(_LOUD, "embedding.", half.last()) for half in self.halves]
        base = {name: w for change in louder for name, w in change.items()}
        loud = _Model(replace(self.bench, base={**self.bench.base, **base}), self._draw)
        before = loud.bench.see(*loud._silent(loud.halves))
        if before.error > SLIGHT * silent.error:
            return None
        found = loud._first_half(before, any_size=True)
        return found if found is not None and found.path.endswith("residual") else None

    def _before_the_blocks(self, told: str, quiet: Sequence[dict[str, Array]]) -> Part:
        """Let the ids that are used have rows of zeros: what is left are the positions."""
        table = self.bench.base["embedding.weight"].copy()
        table[self.bench.inputs] = 0.0
        bare = self.bench.see(*quiet, {"embedding.weight": table if self.bench.variant.tied else 0.0 * table})
        if self.bench.agrees(bare):
            return first("embedding", f"{told}, and by nothing once the rows of the embedding are 0")
        alike = {"embedding.weight": np.broadcast_to(self.bench.base["embedding.weight"][0], table.shape)}
        if self.bench.variant.tied and self.bench.agrees(self.bench.see(*quiet, alike)):
            return first("embedding", f"{told}, and by nothing once the rows of the embedding are all alike")
        return first("positions", f"{told}, and by {bare.largest:.3g} where the rows of the embedding are 0")

    def _beyond(self, seen: Seen, quiet: Sequence[dict[str, Array]], told: str) -> Part | None:
        """Recognize what comes after the last norm."""
        if _of_the_head(self.bench, seen, self._last()):
            return first("head", f"{told}, in a way that comes after the last norm")
        if self._displaced(seen, quiet):
            return first("output", f"{told}, and the rows of logits are right ones, of other places")
        return None

    def _displaced(self, seen: Seen, quiet: Sequence[dict[str, Array]]) -> bool:
        """Whether rows of logits are those of other places; without positions, those of other ids look the same."""
        enough = max(self.bench.tolerance, 1e-7) * max(float(np.abs(seen.want).max()), 1e-30)
        got, want = (a.reshape(-1, a.shape[-1]) for a in (seen.got, seen.want))  # (B·T, V)
        apart = np.abs(got[:, None] - want[None]).max(axis=-1)  # (B·T, B·T)
        moved = (apart.min(axis=1) <= enough) & (apart.argmin(axis=1) != np.arange(len(got)))
        if 2 * moved.sum() < len(got):
            return False
        one = np.full_like(self.bench.inputs, self.bench.inputs[0, 0])
        return self._adds_positions() or self.bench.agrees(self.bench.see(*quiet, inputs=one))

    def _sized_rows(self, half: Half, others: Sequence[Half], told: str, enough: float) -> Part | None:
        """Recognize embeddings of another size each: where they are equally long, one factor explains all."""
        changed, inputs = self._neutral()
        seen = self.bench.see(*self._silent(others), changed, inputs=inputs)
        if self.bench.factor(seen, self.bench.names(half.last()))[1] > enough:
            return None
        return first("embedding", f"{told}, and by nothing next to a multiple of embeddings that are equally long")

    def _lost(self, norm: str | None, seen: Seen) -> bool:
        """Whether nothing but zeros is read by the last norm, or by the head."""
        if norm is not None:
            return super()._lost(norm, seen)
        head = "embedding.weight" if self.bench.variant.tied else "head.weight"
        return self.bench.off(seen, self.bench.zeros("head.weight", head)) <= self.bench.tolerance

    def _acting(self, silent: Seen) -> Half | None:
        """Return the first half whose norm has an effect though it is silent."""
        quiet = self._silent(self.halves)
        enough = max(self.bench.tolerance, CLEARLY * silent.error)
        plain = self.bench.plain(*(half.norm for half in self.halves))
        if distance(self.bench.see(*quiet, plain).got, silent.got) <= enough:
            return None
        each = ((half, self.bench.see(*quiet, self.bench.plain(half.norm))) for half in self.halves)
        return next((half for half, seen in each if distance(seen.got, silent.got) > enough), self.halves[0])

    def _inside(self, told: str, neutral: dict[str, Array], enough: float) -> Part:
        """Plain inner norms agree on neutral rows: give each its own γ and β, then take any rows."""
        silent = self._silent(self.halves)
        passed = [n for n in self._inner() if n == "embedding_norm" or not self.pre]
        for norm in passed:
            others = [other for other in passed if other != norm]
            changed = {n: w for n, w in neutral.items() if not n.startswith(norm)}
            if self.bench.see(*silent, self.bench.plain(*others), changed).error > enough:
                return first(norm, f"{told}, and by nothing as long as its γ is 1 and its β is 0")
        earliest = (*passed, self._last() or "embedding")[0]
        return first(earliest, f"{told}, and by nothing on rows that a norm leaves as they are")

    def _inner(self) -> list[str]:
        """Return the norms before the last one that the stream passes or passes by, in the order of depth."""
        found = ["embedding_norm"] if self.bench.variant.embedding_norm else []
        found += [half.norm for half in self.halves]
        return [norm for norm in found if norm != self._last()]

    def _last(self) -> str | None:
        """Return the norm that the head reads, if there is one."""
        if self.bench.variant.final_norm:
            return "norm"
        return None if self.pre else self.halves[-1].norm


def _of_the_head(bench: Bench, seen: Seen, last: str | None) -> bool:
    """Whether logits differ in a way of the head: not what its matrix can give, or a multiple of the right ones."""
    head = seen.weights["embedding.weight" if bench.variant.tied else "head.weight"]  # (V, D)
    enough = max(bench.tolerance, 1e-7) * max(float(np.abs(seen.want).max()), 1e-30)
    got, want = (a.reshape(-1, a.shape[-1]) for a in (seen.got, seen.want))  # (B·T, V)
    bias = seen.weights.get("head.bias", np.zeros(len(head)))
    if not np.isfinite(got).all() or np.abs(_left_by(head, (got - bias).T)).max() > enough:
        return True
    if last is None or f"{last}.bias" in seen.weights:  # a norm would have left its β as it is
        got, want = got - bias, want - bias
    elif not bench.variant.head_bias:
        return False
    return bool(np.abs(_left_by(want.reshape(-1, 1), got.reshape(-1, 1))).max() <= enough)


def _left_by(matrix: Array, columns: Array) -> Array:
    """Return what of the columns no combination of the matrix's columns gives."""
    return np.asarray(columns - matrix @ np.linalg.lstsq(matrix, columns, rcond=None)[0])
