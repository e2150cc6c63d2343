"""Results besides the first one, by the names that objects and dictionaries give them: `pooler_output`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.calls import BoundMethod
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance

__all__ = ["by_their_names"]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "pool": ("pooler_output", "pooled_output", "pooled", "pooler"),
    "next_sentence": (
        "seq_relationship_logits", "seq_relationship_score", "next_sentence_logits", "next_sentence", "nsp_logits",
        "nsp",
    ),
}  # fmt: skip
"""By method, the names of its result in a call's, the most frequent first."""


def by_their_names(instance: Instance) -> dict[str, BoundMethod]:
    """Return its methods, each with the name of its result where the call returns none in its place."""
    found = dict(instance.subject.bound.methods)
    for name in found.keys() & _NAMES.keys():
        if _answers(instance, name):
            continue
        for key in _NAMES[name]:
            named = {**found, name: replace(found[name], output=key)}
            if _answers(instance.with_bound(replace(instance.subject.bound, methods=named)), name):
                found = named
                break
    return found


def _answers(instance: Instance, method: str) -> bool:
    """Whether a call returns this result in the contract's shape."""
    try:
        instance.call(*instance.example_inputs(Draw(0, "methods")), method=method)
    except (ImplementationFailure, ClauseFailure):
        return False
    return True
