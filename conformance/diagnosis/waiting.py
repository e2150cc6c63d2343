"""What the numbers of clauses say that wait for one that fails, where the failing one says nothing.

A specific clause measures one thing, such as the divisor of scores, and holds back those that compare whole results. If
the thing measured has no known mistake, a whole result may be what the definition gives with one slip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.results import Certainty, DifferingPart, Result, Verdict
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.suite.registry import tests

__all__ = ["is_guess", "told_by_waiting"]

_MOST = 2
"""So many clauses of a component are looked at."""
_MADE = {How.MADE, How.SUPPOSED}
"""What is worked out from the definition, and not by the look of the numbers."""


def told_by_waiting(
    implementation: Implementation, results: Sequence[Result], parts: Mapping[str, DifferingPart],
    *, profile: str, seed: int,
) -> dict[str, DifferingPart]:  # fmt: skip
    """Return, by component, which slip gives the numbers of a clause that waits, where no failure has a name."""
    judge = Judge(implementation, tests(profile), seed=seed)
    found: dict[str, DifferingPart] = {}
    for name in dict.fromkeys(r.clause.component for r in results if r.verdict is Verdict.FAIL):
        own = [result for result in results if result.clause.component == name]
        if name == "all" or any(map(_is_explained, own)):
            continue
        waiting = [r.clause for r in own if r.verdict is Verdict.BLOCKED and "oracle" in r.clause.evidence]
        for clause in [one for one in waiting if not one.sizes][:_MOST]:
            finding = judge.alone(clause.id).finding
            if finding is not None and (said := finding.relation) is not None and _is_made(said):
                path = parts[name].path if name in parts else ""
                found[name] = DifferingPart(path, f"{clause.id} waits, and says: {finding.label.rstrip(', ')}: {said}")
                break
    return found


def is_guess(result: Result) -> bool:
    """Whether all that is named is a guess."""
    return bool(result.looks_like) and result.looks_like[0].certainty is Certainty.UNSURE


def _is_explained(result: Result) -> bool:
    """Whether a failure has a name that is no guess, or its numbers say what makes them."""
    relation = result.finding.relation if result.finding is not None else None
    known = bool(result.looks_like) and not is_guess(result)
    return result.verdict.red and (known or (relation is not None and _is_made(relation)))


def _is_made(relation: Relation) -> bool:
    return relation.how in _MADE
