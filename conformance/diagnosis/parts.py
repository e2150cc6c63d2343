"""Find the first part of a composite that differs from the definition.

The inside of an implementation is not visible, but we choose its weights: with weights of 0, attention and feed-forward
networks add nothing. Starting with everything off, parts are switched on in order of depth, and after each one the
output is compared with the definition's under the same weights: the first part after which they disagree is the one
that differs. Rows that a norm does not change distinguish a norm from the part that reads it.

comparing.py    a component with chosen weights, compared with the definition under these weights or others
head_parts.py   multi-head attention: v, out, heads, mask, q, k, scale, scores
block_parts.py  a block: attention, feed_forward, norm1, norm2, residual
model_parts.py  a model: embedding, positions, blocks.{i} and their parts, norm, head, output
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.diagnosis.block_parts import block_part
from conformkit.conformance.diagnosis.comparing import PartTrial
from conformkit.conformance.diagnosis.head_parts import heads_part
from conformkit.conformance.diagnosis.model_parts import model_part
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.results import DifferingPart, Result, Verdict
from conformkit.conformance.evidence.logits import rows
from conformkit.spec.clauses import Level
from conformkit.spec.generation import continue_greedily

if TYPE_CHECKING:
    from conformkit.conformance.engine.implementation import Implementation
    from conformkit.conformance.subject.component import Subject

__all__ = ["DifferingPart", "first_difference", "locate"]

_FIND = {"MultiHeadAttention": heads_part, "TransformerBlock": block_part, "TinyTransformerLM": model_part}
_GENERATING = {"generation", "sampling"}
_TROUBLE = (DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError)


@dataclass(frozen=True, slots=True)
class _Setting:
    """Sizes to try, and the number of rows and tokens."""

    batch: int
    tokens: int
    sizes: dict[str, int]


_USUAL = _Setting(2, 6, {"num_layers": 3, "vocab_size": 19})
_SETTINGS = (
    _USUAL,
    _Setting(1, 70, {"num_layers": 2, "vocab_size": 79, "block_size": 72}),
    _Setting(1, 6, {"num_layers": 6, "vocab_size": 37, "num_heads": 12, "d_model": 24}),
)
"""Usual sizes; if nothing differs at those, many positions, then many heads and layers."""


def locate(
    implementation: Implementation, results: Iterable[Result], *, seed: int = 0, level: Level = Level.MUST
) -> dict[str, DifferingPart]:
    """Return, by component, the first part that differs, for each composite with a failed clause about values.

    Clauses that do not bind at this level are not looked at: what only warns has no part that must change.
    """
    found_open = [r for r in results if r.verdict.red or r.verdict is Verdict.BLOCKED]
    open_clauses = [r.clause for r in found_open if level.includes(r.clause.level)]
    found: dict[str, DifferingPart] = {}
    for name in _FIND:
        own = [clause for clause in open_clauses if clause.component == name]
        generating = [clause.id for clause in own if clause.document in _GENERATING]
        values = any(not {"oracle", "golden"}.isdisjoint(clause.evidence) for clause in own)
        if not (values or generating) or not implementation.has(name):
            continue
        try:
            part = _search(implementation.subject(name), seed)
            right = part is None and bool(generating) and _is_right(implementation.subject(name), seed)
        except _TROUBLE:
            continue
        if right:
            sentence = "the logits are correct, the clauses that fail are about generated text"
            part = DifferingPart("generate", f"{sentence}: {', '.join(generating[:3])}")
        if part is not None:
            found[name] = part
    return found


def first_difference(subject: Subject, seed: int) -> DifferingPart | None:
    """Return the first part that differs; None if none does, or if it cannot be found."""
    try:
        return _search(subject, seed)
    except _TROUBLE:
        return None


def _search(subject: Subject, seed: int) -> DifferingPart | None:
    """Try one setting after another. Raises one of _TROUBLE if that is not possible."""
    if subject.name not in _FIND:
        return None
    subject.bound.require_weights()
    for number, setting in enumerate(_SETTINGS):
        draw = Draw(seed, f"parts {number}")
        bench = _bench(subject, draw, setting)
        if (part := _FIND[subject.name](bench, draw)) is not None:
            return part
        if setting is _USUAL and (part := _generation(bench)) is not None:
            return part
    return None


def _is_right(subject: Subject, seed: int) -> bool:
    """Whether the usual setting shows the definition's output: no part is found either where it is no number."""
    bench = _bench(subject, Draw(seed, "parts 0"), _USUAL)
    return bench.agrees(bench.see())


def _bench(subject: Subject, draw: Draw, setting: _Setting) -> PartTrial:
    """Build, and draw weights and inputs; each id of the vocabulary occurs at most once."""
    instance = subject.construct(subject.sizes(**setting.sizes))
    batch, length = rows(subject, setting.batch), subject.tokens(setting.tokens)
    if not subject.bound.component.is_language_model:
        inputs = draw.values(batch, length, instance.sizes["d_model"])
        allowed = subject.tolerance(subject.bound.component.depth)
        return PartTrial(instance, draw.weights(instance.canonical), inputs, allowed)
    ids = draw.permutation(instance.sizes["vocab_size"])
    length = min(length, instance.sizes["block_size"], len(ids))
    batch = min(batch, len(ids) // length)
    depth = 2 * int(instance.sizes["num_layers"]) + 1
    weights = draw.weights(instance.canonical)
    return PartTrial(instance, weights, ids[: batch * length].reshape(batch, length), subject.tolerance(depth))


def _generation(bench: PartTrial) -> DifferingPart | None:
    """Compare greedy text with the definition's under these weights, unless calls depend on earlier ones."""
    instance = bench.instance
    if instance.subject.bound.generation is None:
        return None
    turned = np.concatenate([bench.inputs[:, :1], bench.inputs[:, :0:-1]], axis=1)
    others = turned, bench.inputs[:, : instance.subject.tokens(3)]
    if not all(bench.agrees(bench.see(inputs=ids)) for ids in others):
        return None
    prompt, context = bench.inputs[:, : instance.subject.tokens(3)], instance.sizes["block_size"]
    want = continue_greedily(lambda ids: bench.definition(bench.base, ids), prompt, context, context)
    instance.write(bench.base).generate(turned[:, : prompt.shape[1]], context, greedy=True)  # may leave state behind
    got = instance.generate(prompt, context, greedy=True).out
    if np.array_equal(got, want):
        return None
    sentence = "the logits are correct, the greedy text is not"
    if "use_cache" in instance.subject.bound.generation.call.names():
        without = instance.generate(prompt, context, greedy=True, use_cache=False).out
        if np.array_equal(without, want):
            kept = "positions and masks count differently there, and earlier calls may leave state"
            return DifferingPart(
                "generate.cache", f"{sentence}, unless use_cache is False: look at what the cache keeps; {kept}"
            )
    if got.shape != want.shape:
        return DifferingPart("generate", f"{sentence}: its shape is {got.shape}, expected {want.shape}")
    return DifferingPart(
        "generate", f"{sentence}: column {int((got != want).any(axis=0).argmax())} is the first that differs"
    )
