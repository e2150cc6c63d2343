"""Clauses judged once more, as if the choices that were made but not declared had been declared.

A choice that the numbers show costs one red line, which names what to declare. Everything else that it broke or
blocked is judged under the choice, so that a mistake beside it is seen. A component is taken for another variant only
if that gives its numbers at three sizes: at two of the search (diagnosis/undeclared.py), and when it is bound again.
Biases alone are taken from the parameters where no variant gives the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformkit.conformance.diagnosis.undeclared import ANYWHERE, Search, Trials, searched
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.results import Certainty, Result, Undeclared, Verdict
from conformkit.spec.clauses import Clause, Level
from conformkit.spec.variants import Variant

__all__ = ["Choices", "JudgeAgain", "found_choices", "further_choices"]

JudgeAgain = Callable[[Sequence[Clause], Sequence[Result]], list[Result]]
"""Judges clauses; the results on other clauses, which they may need, are known."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices that were found, and the results under them."""

    undeclared: Sequence[Undeclared] = ()
    results: Sequence[Result] = ()
    caused: Sequence[Result] = ()
    """All results that are red because of the choices alone, as if these were mistakes."""
    broken: frozenset[str] = frozenset()
    """Ids of those that stay red: one a choice."""
    used: Mapping[str, Variant] = field(default_factory=dict)
    """By component, the variant under which it is judged now, if that is not the declared one."""
    left: frozenset[str] = frozenset()
    """Components in which only the usual choices were looked for, and none found."""
    trials: Trials = field(default_factory=dict)
    """What was computed for that."""


def found_choices(
    implementation: Implementation, results: Sequence[Result], judge_again: JudgeAgain, *,
    far: Container[str] = ANYWHERE, trials: Trials | None = None,
) -> Choices:  # fmt: skip
    """Find undeclared choices, those of newer models in the components of `far`; judge again what did not pass.

    The implementation stays bound in the variants found.
    """
    search = searched(implementation, results, far=far, trials=trials)
    undeclared, left = search.entries(), frozenset(search.left)
    used = _bound_again(implementation, search, undeclared) if undeclared else {}
    if not used:
        return Choices(undeclared, results, left=left, trials=search.trials)
    open_ones = [r for r in results if r.verdict is not Verdict.PASS and not r.unfinished]
    again = {r.clause.id: r for r in judge_again([r.clause for r in open_ones], _passed(results, open_ones))}
    caused = [r for r in open_ones if r.verdict.red and _held(again[r.clause.id])]
    broken = _one_each(undeclared, caused)
    marked = [_told(r, broken[r.clause.id]) if r.clause.id in broken else again.get(r.clause.id, r) for r in results]
    return Choices(undeclared, marked, caused, frozenset(broken), used, left, search.trials)


def further_choices(
    before: Choices, named: Sequence[Result], implementation: Implementation, judge_again: JudgeAgain
) -> Choices | None:
    """Look for newer models' choices where no known mistake gives the numbers; None if there are none.

    They take longer to look for than known mistakes, and are rarer.
    """
    far = {component for component in before.left if not _explained(component, named)}
    if not far:
        return None
    found = found_choices(implementation, before.results, judge_again, far=far, trials=before.trials)
    if not found.undeclared:
        return None
    return replace(
        found, undeclared=(*before.undeclared, *found.undeclared), caused=(*before.caused, *found.caused),
        broken=before.broken | found.broken, used={**before.used, **found.used},
    )  # fmt: skip


def _explained(component: str, named: Sequence[Result]) -> bool:
    """Whether all binding failures of a component have a known mistake's name, and some its very numbers."""
    red = [r for r in named if r.verdict.red and r.clause.component == component and r.clause.level is Level.MUST]
    sure = [{like.certainty for like in r.looks_like[:1]} for r in red]
    return any(Certainty.EXACT in each for each in sure) and all(each - {Certainty.UNSURE} for each in sure)


def _bound_again(
    implementation: Implementation, search: Search, undeclared: Sequence[Undeclared]
) -> dict[str, Variant]:
    """Bind each component in the variant found, those without choices of their own in that of the others."""
    made = {entry.choice: entry.actual for entry in undeclared if entry.table == "variant"}
    used: dict[str, Variant] = {}
    for subject in implementation.subjects():
        found = search.found(subject.name) if search.examines(subject.name) else subject.variant.but(**made)
        wrong = subject.name in search.by_layers
        if found not in (None, subject.variant) and implementation.rebind_as(subject.name, found, wrong=wrong):
            used[subject.name] = found
    return used


def _passed(results: Sequence[Result], others: Collection[Result]) -> list[Result]:
    ids = {result.clause.id for result in others}
    return [result for result in results if result.clause.id not in ids]


def _held(result: Result) -> bool:
    return result.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}


def _one_each(undeclared: Sequence[Undeclared], caused: Sequence[Result]) -> dict[str, tuple[Undeclared, ...]]:
    """Return a clause for each choice, of those that fail only because of the choices: binding ones first."""
    ordered = sorted(caused, key=lambda result: result.clause.level is not Level.MUST)
    chosen: dict[str, tuple[Undeclared, ...]] = {}
    for entry in undeclared:
        free = [r for r in ordered if r.clause.id not in chosen and r.clause.component == entry.component]
        about = [r for r in free if entry.choice in f"{r.clause.fix} {r.clause.applies}"]
        if about or free:
            chosen[(about or free)[0].clause.id] = (entry,)
    if not any(result.clause.level is Level.MUST for result in caused if result.clause.id in chosen):
        chosen |= {result.clause.id: tuple(undeclared) for result in ordered[:1]}
    return chosen


def _told(result: Result, choices: Sequence[Undeclared]) -> Result:
    lines = [f"`{choice.line}` under [{choice.table}]" for choice in choices]
    say = f"not declared: write {' and '.join(lines)} in conform.toml, if that is meant"
    line = f"{say}; other clauses are judged as if it stood there"
    return replace(result, finding=result.finding.noting(line) if result.finding is not None else None)
