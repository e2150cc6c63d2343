"""The parts of multi-head attention, of a block and of the model, switched on one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.diagnosis.comparing import Bench, Seen, neutral_rows
from conformkit.conformance.evidence.draws import Draw
from conformkit.spec.positional_encoding import positional_encoding

__all__ = ["Part", "block_part", "heads_part", "model_part"]

Array = npt.NDArray[Any]
_CLEARLY = 0.01
"""An explanation leaves at most this share of the difference."""
_SLIGHT = 1e-3
"""A difference of silent parts so much smaller than the whole one's is not what makes it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The first part that differs, by the path of its parameters, and what shows it."""

    path: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Half:
    """Attention or the feed-forward network of a block, and the norm that goes with it."""

    bench: Bench
    block: str
    """The prefix of its block's parameters."""
    name: str

    @property
    def path(self) -> str:
        return self.block + self.name

    @property
    def norm(self) -> str:
        return self.block + ("norm1" if self.name == "attention" else "norm2")

    def silent(self) -> dict[str, Array]:
        """Return weights with which it gives 0."""
        last = "down." if self.name == "feed_forward" else "out." if self.bench.variant.output_projection else "v."
        return self.bench.zeros(f"{self.path}.{last}")


def block_part(bench: Bench, draw: Draw) -> Part | None:
    """Return the first part of a block that differs."""
    return _Stack(bench, draw).part()


def model_part(bench: Bench, draw: Draw) -> Part | None:
    """Return the first part of a language model that differs."""
    return _Model(bench, draw).part()


class _Stack:
    """A block: halves in the order of depth, and a stream that can be chosen."""

    def __init__(self, bench: Bench, draw: Draw) -> None:
        self.bench, self._draw = bench, draw
        self.halves = [_Half(bench, block, name) for block in self._blocks() for name in ("attention", "feed_forward")]
        self.pre = bench.variant.placement == "pre"

    def part(self) -> Part | None:
        """Switch on one half after the other."""
        full = self.bench.see()
        if self.bench.agrees(full):
            return None
        before = self.bench.see(*self._silent(self.halves))
        allowed = max(self.bench.tolerance, 10 * before.error if before.error < _SLIGHT * full.error else 0.0)
        if before.error > allowed:
            return self._around(before)
        if not self.bench.agrees(before) and (found := self._scaled_stream(full)):
            return found
        for number, half in enumerate(self.halves):
            seen = self.bench.see(*self._silent(self.halves[number + 1 :]))
            if seen.error > allowed:
                return self._within(half, before, seen, allowed)
            before = seen
        return None

    def _within(self, half: _Half, before: Seen, seen: Seen, allowed: float) -> Part:
        """Tell a half from its norm, and from what only shows where others are on."""
        others = [other for other in self.halves if other is not half]
        alone = self.bench.see(*self._silent(others))
        if alone.error <= allowed:
            return self._together(half, seen, allowed)
        told = f"silent up to there the output is off by {before.error:.1g} at most, with it by {seen.largest:.3g}"
        if self.pre and self._is_the_norm(half, others, alone.error):
            return _first(half.norm, f"{told}, and not so on rows that a norm leaves as they are")
        return _first(half.path, told)

    def _together(self, half: _Half, seen: Seen, allowed: float) -> Part:
        rest = [other for other in self.halves if other.block != half.block]
        told = f"each part alone agrees; with {half.path} after the others the output is off by {seen.largest:.3g}"
        if rest and self.bench.see(*self._silent(rest)).error <= allowed:
            return Part("blocks", f"{told}: the blocks differ only together, as where their order is another one")
        return Part(f"{half.block}residual", f"{told}: they differ only together, as where one is wired to another input")

    def _is_the_norm(self, half: _Half, others: Sequence[_Half], error: float) -> bool:
        """Whether neutral rows, with some factor or without γ or β, explain what comes out of this half alone."""
        silent = self._silent(others)
        changed, inputs = self._neutral()
        seen = self.bench.see(*silent, changed, inputs=inputs)
        if self._explained(seen, half.norm, error):
            return True
        seen = self.bench.see(*silent, changed, self.bench.plain(half.norm), inputs=inputs)
        return self._explained(seen, half.norm, error)

    def _explained(self, seen: Seen, norm: str, error: float) -> bool:
        """Whether a norm that only scales, or lacks γ or β, explains what was seen on neutral rows."""
        enough = max(self.bench.tolerance, _CLEARLY * error)
        if any(self.bench.off(seen, change) <= enough for change in _affine(seen, norm)):
            return True
        return self.bench.off_by_a_factor(seen, [f"{norm}.weight"]) <= enough

    def _silent(self, halves: Sequence[_Half]) -> list[dict[str, Array]]:
        return [half.silent() for half in halves]

    # -- what a block and a model do differently -----------------------------------------------------------------

    def _blocks(self) -> list[str]:
        return [""]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Return weights and inputs with which the stream has neutral rows."""
        return {}, neutral_rows(self._draw, *self.bench.inputs.shape)

    def _scaled_stream(self, _full: Seen) -> Part | None:
        return None

    def _around(self, silent: Seen) -> Part:
        """Both halves are silent, and yet it differs: the norms after the residual sums, or the sums."""
        told = f"with attention and feed-forward silent the output is off by {silent.largest:.3g}"
        if self.pre:
            return Part("residual", f"{told}, where the input itself is to come out: the residual path differs")
        changed, inputs = self._neutral()
        seen = self.bench.see(*self._silent(self.halves), self.bench.plain("norm1"), changed, inputs=inputs)
        if self.bench.agrees(seen):
            return _first("norm1", told)
        if self._explained(seen, "norm2", silent.error):
            return _first("norm2", f"{told}, also where norm1 has nothing to do")
        return Part("residual", f"{told}, and neither norm alone explains it: the residual path differs")


class _Model(_Stack):
    """A model: the stream is chosen by the embedding, and read through the final norm and the head."""

    def _blocks(self) -> list[str]:
        return [f"blocks.{i}." for i in range(self.bench.instance.sizes["num_layers"])]

    def _neutral(self) -> tuple[dict[str, Array], Array]:
        """Let embedding plus position be a neutral row at each place; each id stands at one."""
        ids, width = self.bench.inputs, self.bench.instance.sizes["d_model"]
        rows = neutral_rows(self._draw, *ids.shape, width)
        rows = rows - positional_encoding(self.bench.base, np.zeros_like(rows), variant=self.bench.variant)
        table = self.bench.base["embedding.weight"].copy()
        table[ids] = rows / np.sqrt(width) if self.bench.variant.embedding_scale else rows
        return {"embedding.weight": table, **self.bench.plain("embedding_norm")}, ids

    def _scaled_stream(self, full: Seen) -> Part | None:
        """A stream without positions that is too large shows next to what is added to it."""
        scaled = not self.bench.variant.embedding_scale
        if self.bench.off(full, embedding_scale=scaled) <= _CLEARLY * full.error:
            factor = "a factor √d_model" if scaled else "no factor √d_model"
            return _first("embedding", f"with {factor} the definition gives these numbers, off by {full.largest:.3g} else")
        return None

    def _around(self, silent: Seen) -> Part:
        """All blocks are silent, and yet it differs: embedding, positions, norms, the head, or the residual path."""
        told = f"with every block silent the output is off by {silent.largest:.3g}"
        changed, ids = self._neutral()
        quiet = [*self._silent(self.halves), self.bench.plain(*self._inner())]
        seen = self.bench.see(*quiet, changed, inputs=ids)
        if self.bench.agrees(seen):
            return self._inside(told, changed)
        if (last := self._last()) is not None:
            if self._explained(seen, last, silent.error):
                return _first(last, f"{told}, and by a factor at most on rows that a norm leaves as they are")
            nothing = self.bench.off(seen, {"embedding.weight": np.zeros_like(changed["embedding.weight"])}, positions="none")
            if not self.bench.variant.tied and nothing <= self.bench.tolerance:
                return Part("blocks.0.residual", f"{told}: nothing of the embeddings gets through the blocks")
        if (where := self._beyond(seen)) is not None:
            return where if where.sentence else _first(where.path, told)
        table = self.bench.base["embedding.weight"].copy()
        table[self.bench.inputs] = 0.0
        bare = self.bench.see(*quiet, {"embedding.weight": table if self.bench.variant.tied else 0.0 * table})
        if self.bench.agrees(bare):
            return _first("embedding", f"{told}, and by nothing once the rows of the embedding are 0")
        return _first("positions", f"{told}, and by {bare.largest:.3g} where the rows of the embedding are 0")

    def _inside(self, told: str, neutral: dict[str, Array]) -> Part:
        """Plain inner norms agree on neutral rows: give each its own γ and β, then take any rows."""
        silent = self._silent(self.halves)
        for norm in self._inner():
            others = [other for other in self._inner() if other != norm]
            changed = {n: w for n, w in neutral.items() if not n.startswith(norm)}
            if not self.bench.agrees(self.bench.see(*silent, self.bench.plain(*others), changed)):
                if self.pre and norm != "embedding_norm":
                    path = f"{norm.rpartition('.')[0]}.residual"
                    return Part(path, f"{told}: the γ or β of {norm} act on the stream, which has to pass it by")
                return _first(norm, f"{told}, but not as long as its γ is 1 and its β is 0")
        first = next(iter(self._inner() if not self.pre or self.bench.variant.embedding_norm else []), None)
        return _first(first or self._last() or "embedding", f"{told}, but not on rows that a norm leaves as they are")

    def _inner(self) -> list[str]:
        """Return the norms before the last one that the stream passes or passes by, in the order of depth."""
        found = ["embedding_norm"] if self.bench.variant.embedding_norm else []
        found += [half.norm for half in self.halves]
        return [norm for norm in found if norm != self._last()]

    def _last(self) -> str | None:
        """Return the norm that the head reads, if there is one."""
        if self.bench.variant.final_norm:
            return "norm"
        return None if self.pre or not self.halves else self.halves[-1].norm

    def _beyond(self, seen: Seen) -> Part | None:
        """Recognize what happens after the last norm: logits that the head's matrix can't give, or at other places."""
        weights, variant = seen.weights, self.bench.variant
        head = weights["embedding.weight" if variant.tied else "head.weight"]  # (V, D)
        got = seen.got - weights.get("head.bias", np.float64(0.0))
        size = max(float(np.abs(seen.want).max()), 1e-30)
        enough = max(self.bench.tolerance, 1e-7) * size
        flat = got.reshape(-1, got.shape[-1])
        if not np.isfinite(flat).all():
            return Part("head", "")
        if head.shape[0] > head.shape[1] and np.abs(_left_by(head, flat.T)).max() > enough:
            return Part("head", "")
        if np.abs(_left_by(seen.want.reshape(-1, 1), seen.got.reshape(-1, 1))).max() <= enough:
            return Part("head", "")
        return _displaced(seen, enough)


def _displaced(seen: Seen, enough: float) -> Part | None:
    """Recognize logits that are right ones, of other places."""
    got, want = (a.reshape(-1, a.shape[-1]) for a in (seen.got, seen.want))
    apart = np.abs(got[:, None] - want[None]).max(axis=-1)  # (B·T, B·T)
    nearest = apart.argmin(axis=1)
    moved = (apart.min(axis=1) <= enough) & (nearest != np.arange(len(got)))
    if 2 * moved.sum() < len(got):
        return None
    return Part("output", f"{moved.sum()} of {len(got)} rows of logits are those of another place")


def _left_by(matrix: Array, columns: Array) -> Array:
    """Return what of the columns no combination of the matrix's columns gives."""
    return np.asarray(columns - matrix @ np.linalg.lstsq(matrix, columns, rcond=None)[0])


def _affine(seen: Seen, norm: str) -> Iterator[dict[str, Array]]:
    """Yield what common mistakes make of a norm's γ and β."""
    gamma, beta = f"{norm}.weight", f"{norm}.bias"
    old = seen.weights[gamma]
    ones = np.ones_like(old)
    yield {}
    yield from ({gamma: other} for other in (ones, old + 1.0))
    if beta in seen.weights:
        shift = seen.weights[beta]
        yield from ({gamma: g, beta: b} for g in (old, ones) for b in (np.zeros_like(shift), old * shift, shift))


def _first(path: str, told: str) -> Part:
    return Part(path, f"{path} is the first part that differs: {told}")


def heads_part(bench: Bench, draw: Draw) -> Part | None:
    """Return the first part of multi-head attention that differs: v, out, heads, mask or scores."""
    full = bench.see()
    if bench.agrees(full):
        return None
    single = bench.inputs[:, :1]
    if bench.instance.subject.tokens(1) == 1:
        alone = bench.see(inputs=single)
        if not bench.agrees(alone):
            return _values_part(bench, single, alone)
    uniform = bench.see(bench.zeros("q.", "k."))
    if not bench.agrees(uniform):
        told = f"a single position agrees, scores of 0 give an output that is off by {uniform.largest:.3g}"
        same = bench.see(bench.zeros("q.", "k."), inputs=np.repeat(single, bench.inputs.shape[1], axis=1))
        if bench.agrees(same):
            return _first("mask", f"{told}, and by nothing where all positions are alike")
        return _first("heads", f"{told}, also where all positions are alike")
    return _first("scores", f"scores of 0 agree to {uniform.error:.1g}, with q and k the output is off by {full.largest:.3g}")


def _values_part(bench: Bench, single: Array, alone: Seen) -> Part:
    """A position that sees only itself: no scores, no mask, only v, the heads and out."""
    told = f"a position that sees only itself is off by {alone.largest:.3g}"
    if not bench.variant.output_projection:
        return _first("v", told)
    transparent = {"out.weight": _eye(bench.base["out.weight"])}
    if bench.agrees(bench.see(bench.zeros("out."), transparent, inputs=single)):
        return _first("out", f"{told}, and by nothing once out passes on what it reads")
    values = {"v.weight": _eye(bench.base["v.weight"])}
    if bench.agrees(bench.see(bench.zeros("v."), values, inputs=single)):
        return _first("v", f"{told}, and by nothing once v passes on what it reads")
    return _first("heads", f"{told}, also where v or out pass on what they read")


def _eye(like: Array) -> Array:
    return np.eye(*like.shape)
