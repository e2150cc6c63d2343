"""Biases of a framework's default layers, seen in the parameters of code that is wrong besides them.

The numbers of such code are those of no variant. Whether its layers have biases is plain all the same: it has the
parameters of the definition with these biases, and as many of their numbers are called biases.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import combinations

from conformkit.conformance.diagnosis.variant_trial import Trial
from conformkit.spec.variants import Variant

__all__ = ["BIASES", "variant_of_layers"]

BIASES = ("qkv_bias", "output_bias", "ffn_bias")


def variant_of_layers(trial: Trial, base: Variant, own: Container[str]) -> Variant | None:
    """Return the variant near `base` whose biases it has, by its parameters; None if `base` or none fits these.

    `own` are the choices that concern the component.
    """
    free = [choice for choice in BIASES if choice in own]
    for number in range(len(free) + 1):
        for changed in combinations(free, number):
            variant = base.but(**{choice: not getattr(base, choice) for choice in changed})
            if trial.has_layers_of(variant):
                return None if variant == trial.subject.variant else variant
    return None
