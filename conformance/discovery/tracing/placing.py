"""Which of an implementation's parameters hold the weights that were read off a call, and in which layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice

import numpy as np

from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.patterns import to_canonical
from conformkit.conformance.binding.rules import PatternError, Rule
from conformkit.conformance.binding.sizes import derived
from conformkit.conformance.binding.solve import Unassignable
from conformkit.conformance.probing.placements import placements
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["placed"]

_TRIES = 100


def placed(instance: Instance, weights: Mapping[str, Array], variant: Variant) -> tuple[Rule, ...] | None:
    """Return the rules by which its parameters hold these canonical weights; None where no layout does.

    Numbers decide, not names: the weights are random, and each is in one place only.
    """
    try:
        sizes = {
            **instance.sizes,
            **((derived(instance.sizes, variant) or {}) if "num_heads" in instance.sizes else {}),
        }
        wanted = instance.subject.bound.component.parameters(sizes, variant)
    except (ExpressionError, KeyError, TypeError, ValueError):
        return None
    if {name: p.shape for name, p in wanted.items()} != {name: array.shape for name, array in weights.items()}:
        return None
    theirs = {p["name"]: tuple(p["shape"]) for p in instance.trainable}
    raw = {name: array.astype(np.float64) for name, array in instance.read_raw().items()}

    @cache
    def holds(rule: Rule) -> bool:
        """Whether a rule alone gives numbers that were read: so few do that hardly anything is left to be combined."""
        try:
            found = to_canonical((rule,), raw, wanted, sizes)
        except (PatternError, ExpressionError, ValueError):
            return False
        return all(np.array_equal(array, weights[name]) for name, array in found.items())

    try:
        for rules in islice(placements(theirs, wanted, sizes, {}, bare=False, keep=holds), _TRIES):
            found = to_canonical(rules, raw, wanted, sizes)
            if all(name in found and np.array_equal(found[name], array) for name, array in weights.items()):
                return rules
    except (Unassignable, PatternError):
        return None
    return None
