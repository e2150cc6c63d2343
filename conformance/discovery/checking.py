"""Judge a draft, and leave out of it what nothing confirms.

A component whose numbers follow no variant of the definition is wrong, or something else than its name says. A known
mistake that gives exactly its numbers decides for the first, and it stays in the draft. Otherwise nobody can say, and
it is left out, with the reason: what was not confirmed is never judged as if it were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.proposal import NAME_ALONE, Proposal
from conformkit.conformance.engine.results import Certainty, Report, Result, Verdict
from conformkit.conformance.text import count
from conformkit.spec.components import component as component_of
from conformkit.spec.components import is_component

__all__ = ["checked", "failing", "is_open", "without_a_pass"]

_ROUNDS = 4
"""Leaving out a part may leave a whole unconfirmed, and so on: attention, block, model."""
_STYLES = dict.fromkeys(
    ("LM-LOGITS-RAW", "S2S-LOGITS-RAW"),
    "it returns probabilities or their logarithms, and clauses compare logits: if that is a mistake, return the logits",
)
"""Clauses whose failure may be a style of its own that the contract does not have, and how that is told."""


def checked(found: Draft, judge: Callable[[Draft, bool], Report]) -> tuple[Draft, Report]:
    """Return the draft without what nothing confirms, and the report on it.

    `judge` judges a draft, also against known mistakes if its second argument says so. Raises as `judge`.
    """
    explained: set[str] = set()  # stays so, although later rounds try other mistakes first
    for _ in range(_ROUNDS):
        open_ = [p for p in found.judged() if is_open(p) and p.component not in explained]
        report = judge(found, bool(open_))
        explained |= {p.component for p in open_ if _is_explained(_own_failures(p.component, report))}
        unusable = dict(_unusable(found, report))
        wrong = {name: why for name, why in failing(open_, report) if name not in unusable}
        if not unusable and not wrong:
            return _confirmed(found, report), report
        found = found.leaving_out({**unusable, **wrong}, wrong)
    report = judge(found, False)
    return _confirmed(found, report), report


def _confirmed(found: Draft, report: Report) -> Draft:
    """Take back the doubt about numbers of components whose numbers were judged, and are right."""
    passed = {result.clause.id for result in report.results if result.verdict is Verdict.PASS}
    for proposal in found.judged():
        if f"{component_of(proposal.component).prefix}-ORACLE" in passed:
            proposal.doubts = [doubt for doubt in proposal.doubts if doubt != NAME_ALONE]
    return found


def is_open(proposal: Proposal) -> bool:
    """Whether it was chosen by its name alone; code that follows the contract, or is explained, must meet it."""
    return not proposal.matched and not proposal.mistakes and not _follows(proposal)


def _follows(proposal: Proposal) -> bool:
    """Whether it has the contract's name and arguments."""
    component = component_of(proposal.component)
    same = all(ours == theirs for theirs, ours in proposal.table.get("construct", {}).items())
    return same and proposal.table["path"].rpartition(":")[2] in {component.name, component.export}


def _unusable(found: Draft, report: Report) -> Iterator[tuple[str, str]]:
    """Yield the components that cannot be judged as drafted, with the reason; a method costs its component.

    So may something else be that has a component's name, and that the draft does not propose.
    """
    for name, why in report.unusable.items():
        component = name.partition(".")[0]
        if component not in found.without and is_component(component):
            yield component, why.problem


def failing(open_: list[Proposal], report: Report) -> Iterator[tuple[str, str]]:
    """Yield the components with failures that no known mistake explains, and why they are left out."""
    for proposal in open_:
        red = _own_failures(proposal.component, report)
        styles = [_STYLES[r.clause.id] for r in red if r.clause.id in _STYLES and not proposal.compared]
        if styles:
            yield proposal.component, styles[0]
        elif red and not _is_explained(red):
            first = f", {red[0].clause.id} first" if len(red) > 1 else f", {red[0].clause.id}"
            named = f"{count(len(red), 'clause')} about it fail{'s' if len(red) == 1 else ''}{first}"
            yield proposal.component, f"{named}, and no known mistake gives its numbers"


def without_a_pass(names: Iterable[str], report: Report) -> list[str]:
    """Return the tools of which some clauses fail, none of all holds, and no known mistake explains that."""
    found = []
    for name in names if not report.only else ():
        results = [result for result in report.results if result.clause.component == name]
        red = _own_failures(name, report)
        if red and all(result.verdict is not Verdict.PASS for result in results) and not _is_explained(red):
            found.append(name)
    return found


def _own_failures(name: str, report: Report) -> list[Result]:
    """Return what fails, and binds, about a component or a tool."""
    own = (result for result in report.results if result.clause.component == name)
    return [result for result in own if result.verdict.red and report.breaks(result)]


def _is_explained(red: Sequence[Result]) -> bool:
    """Whether a known mistake gives exactly the numbers of one failure, or fails in the same way in each of them."""
    best = [{like.certainty for like in result.looks_like} for result in red]
    return any(Certainty.EXACT in found for found in best) or all(Certainty.LIKELY in found for found in best)
