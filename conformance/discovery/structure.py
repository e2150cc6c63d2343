"""Choices that add or remove parameters, for components whose numbers match no variant.

With declared parameters, the report about such a component is clearest: then only the mistake is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.engine.results import Undeclared
from conformkit.conformance.subject.component import Instance
from conformkit.spec.variants import Variant

__all__ = ["structure"]

_CHOICES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "MultiHeadAttention": {
        "qkv_bias": (True,),
        "key_bias": (False,),
        "output_bias": (True,),
        "output_projection": (False,),
    },
    "FeedForward": {"gated": (True,), "ffn_bias": (False,)},
    "TransformerBlock": {"norm": ("rmsnorm",)},
    "TinyTransformerLM": {"tied": (True,), "head_bias": (False,), "positions": ("learned",), "final_norm": (False,)},
}


def structure(proposals: Sequence[Proposal], choices: Sequence[Undeclared], bench: Bench) -> dict[str, tuple[str, Any]]:
    """Return the choices with which unmatched components have as many numbers as the definition, each with its one."""
    known = {c.choice: c.actual for c in choices if c.table == "variant"}
    found: dict[str, tuple[str, Any]] = {}
    for proposal in proposals:
        if proposal.matched or proposal.component not in _CHOICES or "variant" in proposal.table:
            continue
        try:
            changes = _fewest(proposal, Variant(**known | {name: value for name, (_, value) in found.items()}), bench)
        except WorkerLost:
            raise
        except TROUBLE:
            continue
        if changes:
            found |= {name: (proposal.component, value) for name, value in changes.items()}
            named = ", ".join(f"{name} = {value}" for name, value in changes.items())
            proposal.doubts.append(f"{named}: from its number of parameters alone")
    return found


def _fewest(proposal: Proposal, base: Variant, bench: Bench) -> dict[str, Any]:
    """Return the changes that explain the number of parameters; none if several equally small sets do."""
    instance = bench.subject(proposal.component, proposal.table).build()
    fitting = [changes for changes in _changes(proposal.component) if _explains(instance, base.but(**changes))]
    least = min((len(changes) for changes in fitting), default=0)
    nearest = [changes for changes in fitting if len(changes) == least]
    return nearest[0] if len(nearest) == 1 else {}


def _changes(component: str) -> Iterator[dict[str, Any]]:
    names = _CHOICES[component]
    for values in product(*((None, *values) for values in names.values())):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _explains(instance: Instance, variant: Variant) -> bool:
    parameters = instance.subject.bound.component.parameters(instance.sizes, variant)
    return instance.count() == sum(math.prod(p.shape) for p in parameters.values())
