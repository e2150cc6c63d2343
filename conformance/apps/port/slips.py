"""Which variant a model computes in, where it is not the declared one: tried on what it says with known weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.mistake import Right, mistakes
from conformkit.conformance.apps.port.moves import planned
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.proof import Questions, drawn_weights, said
from conformkit.conformance.apps.port.replay import Alteration, Replay, change_of
from conformkit.conformance.apps.port.sides import LANGUAGE_MODEL, parameters_of
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant, alternatives, choices

__all__ = ["same_parameters", "slipped", "variant_said"]

_SIZES = {"d_model": 24, "num_heads": 4, "d_ff": 96, "vocab_size": 19, "num_layers": 3, "block_size": 17}
_SHAPES = {**_SIZES, "kv_heads": 2, "head_width": 6}
_PAIRS = 300
"""Pairs of choices in one part that are tried."""
_OF_OTHERS = {
    "shared_embeddings", "shared_positions", "segments", "pooler", "head_transform", "next_sentence_head", "pooling",
    "temperature_last", "repetition_counts", "penalty_counts", "positions_scale",
}  # fmt: skip
"""Choices that a language model's logits do not have."""


def slipped(declared: Variant, like: Variant | None) -> Iterator[Variant]:
    """Yield what is declared, and the variant of the other side, with one choice as known mistakes of code make it."""
    tried = [declared, *([like] if like is not None else [])]
    for base in (declared, like):
        for mistake in mistakes().values():
            if base is None or not mistake.choices or not mistake.fits(base):
                continue
            if (variant := base.but(**mistake.choices)) not in tried:
                tried.append(variant)
                yield variant


def same_parameters(one: Variant, other: Variant) -> bool:
    """Whether models of two variants have the same parameters."""
    try:
        here, there = (LANGUAGE_MODEL.parameters(_SHAPES, variant) for variant in (one, other))
    except (KeyError, ValueError):
        return False
    return {n: p.shape for n, p in here.items()} == {n: p.shape for n, p in there.items()}


def variant_said(ours: Code, like: Variant | None) -> Variant | None:
    """Return the variant with the same parameters whose numbers the model gives, part by part; None if none does."""
    declared = ours.variant
    try:
        sizes = ours.at(ours.sizes(_SIZES))
        scene = Questions.drawn(sizes, seed=1, dtype=ours.bound.dtype, most=sizes["vocab_size"])
        drawn = drawn_weights(parameters_of(ours, sizes), 1)
        heard = said(ours, sizes, scene, drawn.__getitem__)
    except Unportable:
        return None
    replay = Replay(
        {n: a.astype(np.float64) for n, a in drawn.items()}, sizes, scene.ids, heard, scene.small
    )  # fmt: skip
    others = [like] if like is not None and same_parameters(declared, like) else []
    for layouts, pairs in ((False, 0), (True, 0), (False, _PAIRS)):
        for base in (*others, declared):
            changes, further = dict(_changes(base)), _known(base, drawn, sizes)
            if any(replay.explains(base, change) for change in further.values() if change.patches):
                return None  # a mistake, which is named later
            if layouts:
                changes |= {name: change for name, change in further.items() if change.weights}
            found, up_to = replay.found(base, changes, pairs)
            if found and not up_to:
                return base.but(**{name: value for one in found for name, value in changes[one].choices.items()})
    return None


def _known(variant: Variant, drawn: Mapping[str, Array], sizes: Mapping[str, Any]) -> dict[str, Alteration]:
    """Return known mistakes in formulas, and weights as they are where names hid how a fused projection is stored."""
    plan = planned(variant, variant, sizes, sizes)
    right = Right(plan, drawn.__getitem__, drawn.__getitem__, (variant, variant), sizes, sizes)
    asked = (m for m in mistakes().values() if (m.patches or m.of_layout) and m.possible(right))
    return {m.id: change for m in asked if not (change := change_of(m, right)).empty}


def _changes(base: Variant) -> Iterator[tuple[str, Alteration]]:
    """Yield the single choices that leave the parameters as they are."""
    for choice in choices():
        if choice in _OF_OTHERS:
            continue
        for value in alternatives(choice, getattr(base, choice)):
            if same_parameters(base, base.but(**{choice: value})):
                yield f"{choice} = {value}", Alteration({choice: value})
