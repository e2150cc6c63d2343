"""The definition as a side of a conversion: it stands in for code that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.family import Family
from conformkit.conformance.apps.port.sides import (
    ARGUMENTS,
    HEADS,
    LANGUAGE_MODEL,
    Model,
    head_sizes,
    parameters_of,
    rules_at,
)
from conformkit.conformance.apps.port.source import stored_shapes, within
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.patterns import to_canonical
from conformkit.conformance.binding.rules import Rule
from conformkit.spec.arrays import Array
from conformkit.spec.rotary import turning_width, turns_whole_pairs
from conformkit.spec.variants import Variant

__all__ = ["Definition"]

_WIDEST = 256
"""The width up to which one is looked for of whose heads the variant rotates whole pairs."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition in one variant, with the names of a family's files."""

    family: Family
    variant: Variant
    notes: tuple[str, ...] = ()
    exact: bool = True

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"the definition as {self.family.name}"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Where canonical weights are in the family's files."""
        return self.family.rules

    @property
    def free(self) -> frozenset[str]:
        """Which of kv_heads and head_width a config.json of the family says."""
        return frozenset(HEADS) & set(self.family.tables["sizes"].values())

    def sizes(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return these sizes, or those that the family prescribes."""
        found = {name: wanted[name] for name in ARGUMENTS}
        for name, limit in self.family.tables["limits"].items():
            found[name] = int(evaluate(str(limit), found))
        while (
            not turns_whole_pairs(turning_width(self.at(found), self.variant), self.variant)
            and found["d_model"] < _WIDEST
        ):
            found["d_model"] += found["num_heads"]
        return self.at(found)

    def at(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return these sizes, with the heads of its variant where they are not given."""
        return {**head_sizes(self.variant, sizes), **sizes}

    def ignored(self, name: str) -> bool:
        """Whether a tensor of its checkpoints is no parameter."""
        return any(fnmatchcase(name, pattern) for pattern in self.family.ignored)

    def others(self, sizes: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the name of a tied head, with that of the embedding."""
        del sizes
        named = {rule.parts[0].name: rule.target for rule in self.rules}
        tied = self.variant.tied and "head.weight" in named
        return {named["head.weight"]: named["embedding.weight"]} if tied else {}

    def model(self, sizes: Mapping[str, Any], dtype: str) -> Model:
        """Return a holder of weights that computes by the formulas."""
        return _Formulas(self, sizes, dtype)


class _Formulas:
    """The definition with weights of its own."""

    def __init__(self, side: Definition, sizes: Mapping[str, Any], dtype: str) -> None:
        self._variant, self._sizes, self._dtype = side.variant, dict(sizes), dtype
        self._parameters = parameters_of(side, sizes)
        self._rules = {
            target: rule for rule in rules_at(side, sizes) for target in stored_shapes([rule], self._parameters)
        }
        self._weights: dict[str, Array] = {}

    def write(self, arrays: Mapping[str, Array]) -> None:
        for target in arrays:
            rule = self._rules[target]
            known = within(self._parameters, rule)
            found = to_canonical([rule], arrays, known, self._sizes)
            self._weights |= {name: np.asarray(array, self._dtype) for name, array in found.items()}

    def logits(self, ids: Array) -> Array:
        return LANGUAGE_MODEL.forward(self._weights, {"ids": ids}, self._sizes, self._variant)

    def close(self) -> None:
        self._weights.clear()
