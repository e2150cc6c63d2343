"""Weights of theirs as weights of ours, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.safetensors_files import TensorEntry
from conformkit.conformance.apps.port.sides import Side, rules_at
from conformkit.conformance.apps.port.source import CanonicalWeights, canonical_names, within
from conformkit.conformance.binding.patterns import shapes, to_implementation
from conformkit.conformance.binding.rules import WEIGHT, Rule, folded
from conformkit.spec.arrays import Array

__all__ = ["Conversion"]


class Conversion:
    """The tensors of ours by name: their formats and shapes, and each when it is asked for.

    `aliases` are further names that the model has for a tensor: a tied head.
    """

    def __init__(
        self, plan: MovePlan, source: CanonicalWeights, ours: Side, sizes: Mapping[str, Any], aliases: Mapping[str, str]
    ) -> None:
        self._plan, self._source, self._sizes = plan, source, sizes
        self._rules = {t: r for r in rules_at(ours, sizes) for t in shapes([r], within(plan.parameters, r))}
        own = {
            target: TensorEntry(self._dtype(rule), shapes([rule], within(plan.parameters, rule))[target])
            for target, rule in self._rules.items()
        }
        self._aliases = {name: of for name, of in aliases.items() if of in own and name not in own}
        self.entries: dict[str, TensorEntry] = own | {name: own[of] for name, of in self._aliases.items()}
        self._last: tuple[int, dict[str, Array]] = (0, {})

    def canonical(self, name: str) -> Array:
        """Return one canonical parameter of ours."""
        return self._plan.array(name, self._source.read)

    def arrays(self, step: Callable[[str], None] = lambda _: None) -> Iterator[tuple[str, Array]]:
        """Yield all tensors in the order of `entries`; `step` is told the name of each."""
        for name in self.entries:
            step(name)
            yield name, self.read(name)

    def read(self, name: str) -> Array:
        """Return one tensor of ours."""
        rule = self._rules[self._aliases.get(name, name)]
        if self._last[0] != id(rule):
            arrays = {n: self.canonical(n) for n in canonical_names(rule, self._plan.parameters)}
            if any(part.expression != WEIGHT for part in rule.parts):
                arrays = {n: a.astype(np.float64) for n, a in arrays.items()}
            known = within(self._plan.parameters, rule)
            self._last = id(rule), to_implementation([rule], arrays, known, self._sizes)
        return self._last[1][self._aliases.get(name, name)]

    def _dtype(self, rule: Rule) -> str:
        """Return the format that holds its numbers: the stored one where they only move."""
        names = canonical_names(rule, self._plan.parameters)
        found = {self._source.dtype(s) for n in names if (s := self._plan.sources(n)) is not None} or {"float32"}
        computed = any(part.expression != WEIGHT for part in rule.parts)
        computed = computed or not all(self._plan.moves[folded(name)].exact for name in names)
        if computed or len(found) > 1:
            return "float64" if "float64" in found else "float32"
        return found.pop()
