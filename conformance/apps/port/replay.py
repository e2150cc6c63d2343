"""Known mistakes replayed: the definition with each of them, compared with what the code says, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.mistake import Mistake, Right, foremost, mistakes
from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.patched import FormulaPatch, patched
from conformkit.conformance.apps.port.proof import QUIET, SMALLNESS, WHOLE, Questions, behind, parts_of
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.apps.port.sides import LANGUAGE_MODEL
from conformkit.spec.arrays import Array
from conformkit.spec.rotary import turns_whole_pairs
from conformkit.spec.variants import Variant

__all__ = ["Alteration", "Replay", "change_of", "replayed"]

_SAME = 3e-6
"""How far the definition may be from code that computes in float32 somewhere, in relation to the largest logit."""
_PAIRS = 1500
"""Pairs of mistakes in one part that are tried."""
_MAX_MISTAKES = 4
"""Mistakes that are looked for at once."""
Step = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Alteration:
    """The definition made otherwise: other choices, other weights, other lines."""

    choices: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Array] = field(default_factory=dict)
    patches: tuple[FormulaPatch, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.choices or self.weights or self.patches)

    def apart(self, other: Alteration) -> bool:
        """Whether it can be made together with another one: they change different things."""
        same = self.choices.keys() & other.choices.keys() | self.weights.keys() & other.weights.keys()
        return not same and not {(p.at, p.find) for p in self.patches} & {(p.at, p.find) for p in other.patches}

    def and_(self, other: Alteration) -> Alteration:
        """Return both together."""
        return Alteration(
            {**self.choices, **other.choices}, {**self.weights, **other.weights}, (*self.patches, *other.patches)
        )


def change_of(mistake: Mistake, right: Right) -> Alteration:
    """Return what a known mistake makes of the definition and of right weights."""
    weights = {
        name: array
        for name, array in mistake.weights(right)
        if not np.isnan(array).any() and not np.array_equal(array, right.ours(name))
    }
    return Alteration(mistake.choices, weights, mistake.patches)


def replayed(
    plan: MovePlan, drawn: Mapping[str, Array], canonical: Mapping[str, Array], theirs: Variant, ours: Code,
    sizes: Mapping[str, Any], own: Mapping[str, Any], scene: Questions, said: Mapping[str, Array], step: Step,
) -> list[NamedMistake]:  # fmt: skip
    """Return the known mistakes whose numbers the code gives, alone or with the choices that differ.

    None where it gives those of its own variant: then it makes no mistake. Where they explain only what the first parts
    say, they are said as likely.
    """
    aim = ours.variant.but(**{choice: getattr(theirs, choice) for choice in plan.obstacles if _is_open(choice)})
    right = Right(plan, drawn.__getitem__, canonical.__getitem__, (theirs, ours.variant), sizes, own)
    tried = Replay(canonical, own, scene.ids, said, scene.small)
    if aim == ours.variant and tried.explains(aim, Alteration()):
        return []
    meant = replace(right, variants=(theirs, aim))  # what the code should be, whatever it was bound as
    changes = {m.id: change_of(m, right) for m in mistakes().values() if m.possible(meant if m.of_code else right)}
    possible = {name: change for name, change in changes.items() if not change.empty}
    possible = dict(sorted(possible.items(), key=lambda entry: not mistakes()[entry[0]].of_code))
    step("looking for a known mistake", len(possible))
    exact = []
    for name, change in possible.items():
        step("", 0)
        if tried.explains(aim, change):
            exact.append(mistakes()[name])
    if exact:  # the weights are the kit's own: what the code may do wrong comes before what a file may hold
        of_code = [mistake for mistake in exact if mistake.of_code]
        return [_named(m, right) for m in foremost(of_code or exact)[:3]]
    if aim != ours.variant and tried.explains(ours.variant, Alteration()):
        return []
    for base in dict.fromkeys((ours.variant, aim)):
        found, up_to = tried.found(base, possible)
        if found:
            return [_named(mistakes()[name], right, up_to, alone=False) for name in found]
    return []


def _is_open(choice: str) -> bool:
    """Whether a choice may be changed without another set of parameters."""
    return choice not in {"gated", "head_width", "kv_heads", "output_projection", "tied", "embedding_norm"}


class Replay:
    """The definition with other weights, choices and lines, against what the code said after each part.

    `small` are tables that were small where the code was asked with small embeddings, so that ε counts.
    """

    def __init__(
        self, canonical: Mapping[str, Array], sizes: Mapping[str, Any], ids: Array, said: Mapping[str, Array],
        small: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self._canonical, self._sizes, self._ids, self._said = canonical, sizes, ids, said
        self._small = tuple(small)
        layers = int(sizes["num_layers"])
        self.parts = [part for part in (*parts_of(layers), WHOLE, QUIET) if part in said]
        """What was said, in the order of computation."""

    def explains(self, variant: Variant, change: Alteration) -> bool:
        """Whether the definition with a change says all that the code said, the whole and with small embeddings."""
        return all(self.same(variant, change, part) for part in (WHOLE, QUIET) if part in self._said)

    def found(self, variant: Variant, possible: Mapping[str, Alteration], pairs: int = _PAIRS) -> tuple[list[str], str]:
        """Return the changes that together say what the code said, and the part up to which; nothing: all of it.

        One part after the other: a change explains the first part that differs, another one a later part.
        """
        chosen: list[str] = []
        whole = Alteration()
        for part in self.parts:
            if self.same(variant, whole, part):
                continue
            more = self._next(variant, whole, part, possible, pairs) if len(chosen) < _MAX_MISTAKES else ()
            if not more:
                return chosen, part
            chosen += more
            for name in more:
                whole = whole.and_(possible[name])
        return chosen, ""

    def _next(
        self, variant: Variant, whole: Alteration, part: str, possible: Mapping[str, Alteration], pairs: int
    ) -> Sequence[str]:  # fmt: skip
        """Return the change, or the two, that explain one more part, and as many of the later ones as any does."""
        open_ = {name: change for name, change in possible.items() if whole.apart(change)}
        alone = [name for name, c in open_.items() if self.same(variant, whole.and_(c), part)]
        if alone:
            later = self.parts[self.parts.index(part) + 1 :]
            return (max(alone, key=lambda name: self._many(variant, whole.and_(open_[name]), later)),)
        if not pairs:
            return ()
        acting = [name for name, c in open_.items() if self._acts(variant, whole, c, part)]
        for tried, (one, other) in enumerate(combinations(acting, 2)):
            both = open_[one], open_[other]
            if tried >= pairs:
                break
            if both[0].apart(both[1]) and self.same(variant, whole.and_(both[0]).and_(both[1]), part):
                return one, other
        return ()

    def _many(self, variant: Variant, change: Alteration, parts: Iterable[str]) -> int:
        """Return how many of these parts, from the first on, a change explains."""
        return next((n for n, part in enumerate(parts) if not self.same(variant, change, part)), 10**6)

    def _acts(self, variant: Variant, whole: Alteration, change: Alteration, part: str) -> bool:
        """Whether a change shows in a part, and in none before it."""
        at = self.parts.index(part)
        before = self._says(variant, whole.and_(change), self.parts[at - 1]) if at else None
        if at and not _alike(before, self._said[self.parts[at - 1]]):
            return False
        return not _alike(self._says(variant, whole.and_(change), part), self._says(variant, whole, part))

    def same(self, variant: Variant, change: Alteration, part: str) -> bool:
        """Whether the definition with a change says what the code said after a part."""
        return _alike(self._says(variant, change, part), self._said[part])

    def _says(self, variant: Variant, change: Alteration, part: str) -> Array | None:
        weights = {**self._canonical, **change.weights}
        if part == QUIET:
            weights |= {name: weights[name] * SMALLNESS for name in self._small if name in weights}
        last = "out" if variant.output_projection else "v"
        for silent in behind(part, int(self._sizes["num_layers"])):
            names = f"{silent}.{'down' if silent.endswith('feed_forward') else last}."
            weights |= {name: np.zeros_like(array) for name, array in weights.items() if name.startswith(names)}
        changed = variant.but(**change.choices)
        if not turns_whole_pairs(int(self._sizes["head_width"]), changed):
            return None
        try:
            with ExitStack() as lines:
                lines.enter_context(patched(change.patches))
                return LANGUAGE_MODEL.forward(weights, {"ids": self._ids}, self._sizes, changed)
        except (KeyError, ValueError, IndexError):  # it needs a parameter that is not there
            return None


def _alike(got: Array | None, said: Array | None) -> bool:
    if got is None or said is None or got.shape != said.shape:
        return False
    error = float(np.abs(got - said).max(initial=0.0))
    return error <= _SAME * max(float(np.abs(said).max(initial=0.0)), 1e-30)


def _named(mistake: Mistake, right: Right, up_to: str = "", *, alone: bool = True) -> NamedMistake:
    if not alone and mistake.of_layout:  # where a mistake keeps code from being bound, its layouts are a guess
        return NamedMistake(mistake.id, f"your numbers {mistake.said(right)}, or the kit binds them so", "likely")
    if up_to:
        return NamedMistake(mistake.id, f"your numbers up to {up_to} {mistake.said(right)}", "likely")
    return NamedMistake(mistake.id, f"exactly your numbers {mistake.said(right)}", "exact")
