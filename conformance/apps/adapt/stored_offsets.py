"""Norms that are stored minus one, as in Gemma: x / rms * (1 + weight).

If such a weight starts at zero, it is read plus one and written minus one, and the component is tried again. If that
gives the definition's numbers, it is declared for each parameter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from conformkit.conformance.apps.adapt.bench import TROUBLE, Bench
from conformkit.conformance.apps.adapt.proposal import Proposal
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.subject.link import Link
from conformkit.spec.arrays import Array

if TYPE_CHECKING:
    pass

__all__ = ["minus_one"]

_NORM = re.compile(r"(norm|(^|[._])ln)[^.]*\.(\w*weight|scale|gamma|g|w)$|(^|[._])(gamma|scale)$", re.IGNORECASE)


class _PlusOne:
    """The worker, with norms shown as they are applied instead of as they are stored."""

    def __init__(self, link: Link) -> None:
        self.link, self.is_torch = link, link.is_torch

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Reply:
        """Ask the worker."""
        if header["op"] == "write":
            tensors = {name: array - 1 if _NORM.search(name) else array for name, array in tensors.items()}
        reply = self.link.request(header, tensors)
        if header["op"] != "read":
            return reply
        return replace(reply, tensors={n: a + 1 if _NORM.search(n) else a for n, a in reply.tensors.items()})


def minus_one(proposal: Proposal, search: Search, bench: Bench) -> bool:
    """Declare the weights of a component whose norms start at zero; return whether it then fits the definition."""
    if proposal.component not in {"TransformerBlock", "TinyTransformerLM"}:
        return False
    link = bench.link
    try:
        if not isinstance(link, _PlusOne) and not _begins_at_zero(proposal, bench):
            return False
        bench.link = link if isinstance(link, _PlusOne) else _PlusOne(link)
        rules = _rules(proposal, search, bench)
    except WorkerLost:
        raise
    except TROUBLE:
        rules = ()
    if not rules:
        bench.link = link
        return False
    proposal.table["weights"] = {
        rule.target: _less_one(rule.source) if _NORM.search(rule.target) else rule.source for rule in rules
    }
    proposal.matched = True
    proposal.doubts.append("its norms are stored minus one, as tried: 1 + weight is what scales")
    return True


def _begins_at_zero(proposal: Proposal, bench: Bench) -> bool:
    instance = bench.subject(proposal.component, proposal.table).build(**bench.sizes)
    found = [array for name, array in instance.read_raw().items() if _NORM.search(name)]
    return bool(found) and not any(np.any(array) for array in found)


def _rules(proposal: Proposal, search: Search, bench: Bench) -> Collection[Rule]:
    """Return its weights in the variant whose numbers it gives; empty if there is none."""
    known = search.known()
    search.look_at(bench.probed(bench.subject(proposal.component, proposal.table), known))
    variant = search.found(proposal.component)
    if variant is None:
        return ()
    declared = {**proposal.table, "variant": variant.differences()}
    bound = bench.probed(bench.subject(proposal.component, declared), known, tries=None).bound
    return bound.rules or () if bound.fits else ()


def _less_one(source: str) -> str:
    name, arrow, axes = source.partition(" -> ")
    return f"{name} - 1{arrow}{axes}"
