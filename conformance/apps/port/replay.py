"""Known mistakes replayed: the definition with each of them, compared with what the code says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.mistake import Mistake, Right, foremost, mistakes
from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.proof import QUIET, SMALLNESS, WHOLE, Questions
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
    """Return the known mistake whose numbers the code gives, alone or with the choices that differ.

    None where it gives those of its own variant: then it makes no mistake.
    """
    aim = ours.variant.but(**{choice: getattr(theirs, choice) for choice in plan.obstacles if _is_open(choice)})
    right = Right(plan, drawn.__getitem__, canonical.__getitem__, (theirs, ours.variant), sizes, own)
    tried = Replay(canonical, own, scene.ids, said[WHOLE], said.get(QUIET), scene.small)
    if aim == ours.variant and tried.right(aim):
        return []
    possible = [m for m in mistakes().values() if m.possible(right)]
    exact = [m for m in possible if tried.gives(aim, m, right)]
    if exact:
        return [_named(m, right) for m in foremost(exact)[:3]]
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
    """The definition with other weights and choices, against what the code said.

    `quiet` is what it said with the tables in `small` made small, where ε counts: no weights alone explain it.
    """

    def __init__(
        self, canonical: Mapping[str, Array], sizes: Mapping[str, Any], ids: Array, said: Array,
        quiet: Array | None = None, small: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self._canonical, self._sizes, self._ids, self._said = canonical, sizes, ids, said
        self._quiet = quiet
        self._tables = {n: canonical[n] * SMALLNESS for n in small if n in canonical}

    def right(self, variant: Variant) -> bool:
        """Whether the code said what the definition says in its variant."""
        return self._same({}, variant, self._said) and self._same_when_small(variant)

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
        return self._same(changed, other, self._said) and (bool(changed) or self._same_when_small(other))

    def _same_when_small(self, variant: Variant) -> bool:
        return self._quiet is None or self._same(self._tables, variant, self._quiet)

    def _same(self, changed: Mapping[str, Array], variant: Variant, said: Array) -> bool:
        try:
            got = LANGUAGE_MODEL.forward({**self._canonical, **changed}, {"ids": self._ids}, self._sizes, variant)
        except (KeyError, ValueError, IndexError):  # it needs a parameter that is not there
            return False
        error = float(np.abs(got - said).max(initial=0.0)) if got.shape == said.shape else np.inf
        return error <= _SAME * max(float(np.abs(said).max(initial=0.0)), 1e-30)


def _named(mistake: Mistake, right: Right) -> NamedMistake:
    return NamedMistake(mistake.id, f"exactly your numbers {mistake.said(right)}", "exact")
