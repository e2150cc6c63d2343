"""Widths that a component can't have: code that raises for odd ones, in words that are no refusal of its own.

A refusal in its own words is found by every run. An error of the framework from a table of sines with an odd number of
columns is not: the limit is written, as a doubt, since the code may also be meant to take odd widths.
"""

from __future__ import annotations

from typing import Any

from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.construction import names_in
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.spec.components import component

__all__ = ["limit_to_even"]

_OWN = {"ValueError", "AssertionError", "NotImplementedError"}
"""Errors that are refusals: the run finds their rule by itself."""
_EVEN = {"d_model": 18, "num_heads": 3}
_ODD_HEADS = {"d_model": 18, "num_heads": 6}
_ODD = {"d_model": 15, "num_heads": 3}
_MEANT = {"d_model": "odd widths", "head_width": "heads of odd width"}


def limit_to_even(proposal: Proposal, bench: Bench) -> None:
    """Add a limit, and a doubt, where odd widths raise something else than a refusal and even ones don't."""
    limits = proposal.table.get("limits", {})
    if "d_model" in limits or "d_model" not in names_in(proposal.table.get("construct", {})):
        return
    if _raised(proposal, _EVEN, bench) is not None:
        return
    for size, sizes in (("head_width", _ODD_HEADS), ("d_model", _ODD)):
        failure = _raised(proposal, sizes, bench)
        if failure is not None and failure not in _OWN:
            proposal.table["limits"] = {**limits, size: {"multiple_of": 2}}
            proposal.doubts.append(f"{_MEANT[size]} raise {failure}: taken for a limit; if they should work, remove it")
            return


def _raised(proposal: Proposal, sizes: dict[str, int], bench: Bench) -> str | None:
    """Return the type of what it raises with these sizes; None if it works, or has no such sizes."""
    known = {argument.name for argument in component(proposal.component).arguments}
    given: dict[str, Any] = {name: size for name, size in sizes.items() if name in known}
    if given.keys() != sizes.keys() and sizes is _ODD_HEADS:
        return None
    try:
        bench.shown(proposal.component, proposal.table, **given)
    except WorkerLost:
        raise
    except ImplementationFailure as failure:
        return failure.type
    except TROUBLE:
        return None
    return None
