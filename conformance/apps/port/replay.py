"""Known mistakes replayed: the definition with each of them, compared with what the code says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.mistake import Mistake, Right, mistakes
from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.proof import WHOLE, Questions
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.apps.port.sides import LANGUAGE_MODEL
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["Replay", "replayed"]

_SAME = 3e-6
"""How far the definition may be from code that computes in float32 somewhere, in relation to the largest logit."""


def replayed(
    plan: MovePlan, drawn: Mapping[str, Array], canonical: Mapping[str, Array], theirs: Variant, ours: Code,
    sizes: Mapping[str, Any], own: Mapping[str, Any], scene: Questions, said: Mapping[str, Array],
) -> list[NamedMistake]:  # fmt: skip
    """Return the known mistake whose numbers the code gives, alone or with the choices that differ."""
    aim = ours.variant.but(**{choice: getattr(theirs, choice) for choice in plan.obstacles if _is_open(choice)})
    right = Right(plan, drawn.__getitem__, canonical.__getitem__, (theirs, ours.variant), sizes, own)
    tried = Replay(canonical, own, scene.ids, said[WHOLE])
    possible = [m for m in mistakes().values() if m.possible(right)]
    exact = [m for m in possible if tried.gives(aim, m, right)]
    if exact:
        return [_named(m, right) for m in exact[:3]]
    settings = [m for m in possible if m.choices]
    for one, other in combinations(settings, 2):
        if not set(one.choices) & set(other.choices) and tried.gives(aim.but(**one.choices), other, right):
            return [_named(one, right), _named(other, right)]
    for one in settings:
        for other in possible:
            if not other.choices and tried.gives(aim.but(**one.choices), other, right):
                return [_named(one, right), _named(other, right)]
    return []


def _is_open(choice: str) -> bool:
    """Whether a choice may be changed without another set of parameters."""
    return choice not in {"gated", "head_width", "kv_heads", "output_projection", "tied", "embedding_norm"}


class Replay:
    """The definition with other weights and choices, against what the code said."""

    def __init__(self, canonical: Mapping[str, Array], sizes: Mapping[str, Any], ids: Array, said: Array) -> None:
        self._canonical, self._sizes, self._ids, self._said = canonical, sizes, ids, said
        self._scale = max(float(np.abs(said).max(initial=0.0)), 1e-30)

    def gives(self, variant: Variant, mistake: Mistake, right: Right) -> bool:
        """Whether the definition with this mistake gives what the code said."""
        changed = {
            n: a
            for n, a in mistake.weights(right)
            if not np.isnan(a).any() and not np.array_equal(a, self._canonical[n])
        }
        other = variant.but(**mistake.choices)
        if not changed and other == variant:
            return False
        try:
            got = LANGUAGE_MODEL.forward({**self._canonical, **changed}, {"ids": self._ids}, self._sizes, other)
        except (KeyError, ValueError, IndexError):  # it needs a parameter that is not there
            return False
        error = float(np.abs(got - self._said).max(initial=0.0)) if got.shape == self._said.shape else np.inf
        return error <= _SAME * self._scale


def _named(mistake: Mistake, right: Right) -> NamedMistake:
    return NamedMistake(mistake.id, f"exactly your numbers {mistake.said(right)}", "exact")
