"""A candidate looked at from inside: one followed call says which variant it is, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.construction import names_in
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.tracing.following import Followed
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.spec.components import base_of
from conformkit.spec.components import component as component_of

__all__ = ["look_inside", "place_weights"]


_FEW = 2
"""Assignments of weights that are tried where one call says which variant it is."""
_OPEN = "no mask"
"""What a discrepancy says of attention that hides nothing, as code for complete texts does on purpose."""


def look_inside(proposal: Proposal, bench: Bench, search: Search) -> None:
    """Suggest the variants of a candidate to the search; note mistakes where everything else is explained.

    Then its choices and weights are declared as they were read: no other variant can give its numbers.
    """
    name = proposal.component
    search.suggested.pop(name, None)
    search.inexplicable.discard(name)
    proposal.mistakes, proposal.placed = [], {}
    found = _grouped(name, proposal.table, bench) or _followed(name, proposal.table, bench)
    several = component_of(name).several
    if found is not None and not several and _hides_nothing(found):  # or code for complete texts: not decided here
        search.inexplicable.add(name)
        found = _followed(name, {**proposal.table, "causal": "never"}, bench)
    if found is None or not found.variants or (not several and _hides_nothing(found)):
        return
    if _is_a_style(found) and not proposal.compared:
        search.inexplicable.add(name)
        return
    if not found.reading.conclusive:
        search.suggested[name] = found.variants
        wholly = not found.reading.findings and not found.reading.open
        proposal.placed = {rule.target: rule.source for rule in found.rules or ()} if wholly else {}
        return
    proposal.mistakes = list(found.reading.findings)
    declared = found.variants[0].differences(base_of(name))
    proposal.table = {**proposal.table, **({"variant": declared} if declared else {})}
    if found.rules:
        proposal.table["weights"] = {rule.target: rule.source for rule in found.rules}
    proposal.doubts += [f"{mistake}: taken for a mistake" for mistake in proposal.seen()]


def place_weights(proposal: Proposal, bench: Bench, search: Search) -> None:
    """Declare where the weights are, as one call showed it, where trying the likely places does not find them."""
    name = proposal.component
    if not proposal.placed or name not in search.suggested:
        return
    declared = {**proposal.table, "variant": search.suggested[name][0].differences(base_of(name))}
    tables = declared, {**declared, "weights": proposal.placed}
    found = [bench.probed(bench.subject(name, table), {}, tries=_FEW).bound.fits for table in tables]
    if found == [False, True]:
        proposal.table = {**proposal.table, "weights": proposal.placed}


def _grouped(name: str, table: Mapping[str, Any], bench: Bench) -> Followed | None:
    """Follow code that is told its number of heads of keys with fewer of them: with as many, none is shared.

    None where it is not told, or where that does not say everything.
    """
    if "kv_heads" not in names_in(table.get("construct", {})):
        return None
    found = _followed(name, {**table, "variant": {"kv_heads": "num_heads // 2"}}, bench)
    return found if found is not None and found.variants and found.reading.conclusive else None


def _hides_nothing(found: Followed) -> bool:
    """Whether all that is wrong is that later positions are visible."""
    findings = found.reading.findings
    return bool(findings) and all(finding.data.get("mask") == _OPEN for finding in findings)


def _is_a_style(found: Followed) -> bool:
    """Whether probabilities are returned, which is a mistake only where a loss takes them for logits."""
    return any(finding.data.get("returns") for finding in found.reading.findings)


def _followed(name: str, table: Mapping[str, Any], bench: Bench) -> Followed | None:
    try:
        return bench.followed(name, table)
    except WorkerLost:
        raise
    except TROUBLE:
        return None
