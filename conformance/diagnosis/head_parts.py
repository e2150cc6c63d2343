"""The parts of multi-head attention, distinguished by single positions, scores of 0 and identity weights."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.comparing import CLEARLY, PartTrial, Seen, first
from conformkit.conformance.engine.results import DifferingPart
from conformkit.spec.arrays import Array

__all__ = ["heads_part"]


def heads_part(bench: PartTrial, _draw: Draw) -> DifferingPart | None:
    """Return the first part of multi-head attention that differs: v, out, heads, mask, q, k, scale or scores."""
    full = bench.see()
    if bench.agrees(full) or (full.got != bench.see().got).any():
        return None
    single = bench.inputs[:, :1]
    if bench.instance.subject.tokens(1) == 1:
        alone = bench.see(inputs=single)
        if not bench.agrees(alone):
            return _values_part(bench, single, alone)
    uniform = bench.see(bench.zeros("q.", "k."))
    if bench.agrees(uniform):
        return _scores_part(bench, full)
    sentence = (
        f"one position alone is right; with several, and all scores 0, the output is off by {uniform.largest:.3g}"
    )
    alike = np.repeat(single, bench.inputs.shape[1], axis=1)
    if bench.agrees(bench.see(bench.zeros("q.", "k."), inputs=alike)):
        return first("mask", f"{sentence}, unless all positions are equal")
    return first("heads", f"{sentence}, even if all positions are equal")


def _scores_part(bench: PartTrial, full: Seen) -> DifferingPart:
    sentence = f"with all scores 0 the output is right, otherwise it is off by {full.largest:.3g}"
    for name, other in (("k", "q"), ("q", "k")):
        if _replaced(bench, full, name, other):
            return first(name, f"{sentence}; if {name} used the weights of {other}, your numbers would be right")
    factor, left = bench.factor(full, ["q.weight", "q.bias"])
    if left <= CLEARLY * full.error:
        return first("scale", f"{sentence}; multiplying your scores by {factor:.4g} makes it right")
    return first("scores", sentence)


def _values_part(bench: PartTrial, single: Array, alone: Seen) -> DifferingPart:
    """A position that attends only to itself: no scores, no mask, only v, the heads and out."""
    if float(np.abs(alone.got).max()) <= bench.tolerance:
        return first("mask", "one position alone sees nothing, not even itself: the output is 0")
    sentence = f"one position alone, which attends only to itself, is off by {alone.largest:.3g}"
    for other in ("k", "q"):
        if _replaced(bench, alone, "v", other):
            return first("v", f"{sentence}; if v used the weights of {other}, your numbers would be right")
    if not bench.variant.output_projection:
        return first("v", sentence)
    transparent = {"out.weight": np.eye(*bench.base["out.weight"].shape)}
    if bench.agrees(bench.see(bench.zeros("out."), transparent, inputs=single)):
        return first("out", f"{sentence}; it is right once the output projection is the identity")
    values = {"v.weight": np.eye(*bench.base["v.weight"].shape)}
    if bench.agrees(bench.see(bench.zeros("v."), values, inputs=single)):
        return first("v", f"{sentence}; it is right once the projection to values is the identity")
    return first("heads", f"{sentence}, even if the projection to values or the output projection is the identity")


def _replaced(bench: PartTrial, seen: Seen, name: str, other: str) -> bool:
    """Whether using one projection's weights in place of another's explains the output."""
    weights = {n: bench.base[other + n.removeprefix(name)] for n in bench.base if n.startswith(f"{name}.")}
    fit = all(weights[n].shape == bench.base[n].shape for n in weights)
    return fit and bench.off(seen, weights) <= max(bench.tolerance, CLEARLY * seen.error)
