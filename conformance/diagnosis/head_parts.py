"""The parts of multi-head attention, told by single positions, by scores of 0 and by transparent weights."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.comparing import CLEARLY, Bench, Seen, first
from conformkit.conformance.engine.results import Part
from conformkit.spec.arrays import Array

__all__ = ["heads_part"]


def heads_part(bench: Bench, _draw: Draw) -> Part | None:
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
    told = f"a single position agrees, with scores of 0 the output is off by {uniform.largest:.3g}"
    alike = np.repeat(single, bench.inputs.shape[1], axis=1)
    if bench.agrees(bench.see(bench.zeros("q.", "k."), inputs=alike)):
        return first("mask", f"{told}, and by nothing where all positions are alike")
    return first("heads", f"{told}, also where all positions are alike")


def _scores_part(bench: Bench, full: Seen) -> Part:
    told = f"with scores of 0 the output agrees, else it is off by {full.largest:.3g}"
    for name, other in (("k", "q"), ("q", "k")):
        if _replaced(bench, full, name, other):
            return first(name, f"{told}, and by nothing with the weights of {other} in those of {name}")
    factor, left = bench.factor(full, ["q.weight", "q.bias"])
    if left <= CLEARLY * full.error:
        return first("scale", f"{told}, and by nothing with the scores multiplied by {factor:.4g}")
    return first("scores", told)


def _values_part(bench: Bench, single: Array, alone: Seen) -> Part:
    """A position that sees only itself: no scores, no mask, only v, the heads and out."""
    told = f"a position that sees only itself is off by {alone.largest:.3g}"
    for other in ("k", "q"):
        if _replaced(bench, alone, "v", other):
            return first("v", f"{told}, and by nothing with the weights of {other} in those of v")
    if not bench.variant.output_projection:
        return first("v", told)
    transparent = {"out.weight": np.eye(*bench.base["out.weight"].shape)}
    if bench.agrees(bench.see(bench.zeros("out."), transparent, inputs=single)):
        return first("out", f"{told}, and by nothing once out passes on what it reads")
    values = {"v.weight": np.eye(*bench.base["v.weight"].shape)}
    if bench.agrees(bench.see(bench.zeros("v."), values, inputs=single)):
        return first("v", f"{told}, and by nothing once v passes on what it reads")
    return first("heads", f"{told}, also where v or out pass on what they read")


def _replaced(bench: Bench, seen: Seen, name: str, other: str) -> bool:
    """Whether one projection's weights at the place of another's explain what was seen."""
    weights = {n: bench.base[other + n.removeprefix(name)] for n in bench.base if n.startswith(f"{name}.")}
    fit = all(weights[n].shape == bench.base[n].shape for n in weights)
    return fit and bench.off(seen, weights) <= max(bench.tolerance, CLEARLY * seen.error)
