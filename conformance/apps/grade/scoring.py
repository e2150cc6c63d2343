"""From verdicts to points. A score starts at zero, and only a pass raises it.

A clause without a pass gives no points: failed, crashed, not implemented, not run. What a clause gives that another one
blocks is the policy's choice: `nothing`; `half` of it, but together no more than what passes in its group, so that
nothing comes from nothing; `own`, nothing where a clause about the same component blocks it, else as with `half`;
`free`, it counts on neither side. A group gives points for clauses, or for the parts of a component in which nothing
fails; there, what fails also limits the group to a share of its points, while an option of `generate` that is not there
costs its part alone. A clause is excluded from
the score only if it cannot apply to the declared, allowed variant, or does not apply to the bundled reference in that
variant either, or if the policy says so. Nothing that the implementation does can exclude a clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conformkit.conformance.apps.grade.parts import SIDE, parts_of
from conformkit.conformance.apps.grade.policy import OPTIONAL, Allowed, GroupPolicy, Policy
from conformkit.conformance.apps.grade.record import Grade, Group, SubmissionOutcome
from conformkit.conformance.binding.config import OPTIONS, Config
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.findings.outline import SENSELESS
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.text import count, listed
from conformkit.spec.clauses import Clause, clauses
from conformkit.spec.components import is_component

__all__ = ["Exclusion", "Score", "empty_groups", "excuses", "rescored", "score"]

_NAMED = 12
_SENSELESS = "these tests could not interpret the results and count as not passed"
_COUNTS = {
    "nothing": "counts as not passed", "half": "counts ½, capped at the number that pass",
    "free": "left out of the count", "own": "counts nothing in the component that failed, else ½",
}  # fmt: skip
_OPTIONS = frozenset(name.replace("_", "-") for name in OPTIONS)
Exclusion = Callable[[Clause], bool]
"""Whether a clause that does not apply is excluded from the score."""


@dataclass(frozen=True, slots=True)
class Score:
    """The points of a submission, with notes for the reader."""

    points: float
    max_points: float
    groups: tuple[Group, ...]
    required: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Clauses that were wanted and cannot apply."""


def score(report: Report, policy: Policy, excused: Exclusion, *, out_of_time: bool = False) -> Score:
    """Return the points for a report. `out_of_time`: the time limit of the whole submission was reached."""
    results = {result.clause.id: result for result in report.results}
    holds = _holding(policy, results, excused)
    groups = [_group(group, holds, results, policy) for group in policy.groups]
    required = tuple(name for name in policy.required if holds.get(name, True) is False)
    notes = _notes(policy, groups, results, [name for name, passed in holds.items() if not passed])
    lost = required or _ended(policy, results, "all") or (out_of_time and policy.losses.deadline == "zero")
    if lost:
        groups = [_emptied(group) for group in groups]
    points = sum(group.points for group in groups)
    most = sum(group.max_points for group in groups)
    excluded = tuple(name for name in policy.wanted() if name not in holds)
    return Score(points, most, tuple(groups), required, tuple(notes), excluded)


def rescored(grade: Grade, policy: Policy) -> Grade:
    """Return a stored grade with the points of this policy; nothing is judged.

    The policy's evidence must be that by which it was judged.
    """
    if grade.report is None and grade.outcome is SubmissionOutcome.JUDGED:
        return grade  # there is nothing to count
    if grade.report is None:
        return replace(grade, groups=empty_groups(policy), points=0.0, max_points=policy.max_points)
    excluded = set(grade.excluded)
    late = grade.outcome is SubmissionOutcome.TIMEOUT
    found = score(from_object(grade.report), policy, lambda clause: clause.id in excluded, out_of_time=late)
    kept = grade.notes[: len(grade.notes) - grade.counted]
    counted = [note for note in grade.notes[len(kept) :] if note.startswith(_SENSELESS) and note not in found.notes]
    return replace(
        grade, points=found.points, max_points=found.max_points, groups=found.groups, required=found.required,
        notes=(*kept, *found.notes, *counted), counted=len(found.notes) + len(counted),
    )  # fmt: skip


def empty_groups(policy: Policy) -> tuple[Group, ...]:
    """Return the groups of a submission that was not judged."""
    return tuple(Group(g.name, g.title, 0.0, g.points, len(g.clauses), 0, (), g.clauses) for g in policy.groups)


def excuses(config: Config, allowed: Allowed, reference_applies: Exclusion) -> Exclusion:
    """Return the function that decides whether a clause that does not apply to this configuration is excluded.

    `reference_applies` is called last: it may have to judge the reference.
    """

    def excused(clause: Clause) -> bool:
        if clause.id in allowed.not_applicable:
            return True
        if any(clause.applies.get(ability) == "yes" for ability in (*OPTIONAL, *allowed.lacking)):
            return True
        return _other_variant(clause, config) or not reference_applies(clause)

    return excused


def _other_variant(clause: Clause, config: Config) -> bool:
    """Whether a clause is not about the declared variant."""
    if not is_component(clause.component):
        return False
    variant = config.variant_for(clause.component)
    return any(hasattr(variant, name) and not variant.meets(name, wanted) for name, wanted in clause.applies.items())


def _holding(policy: Policy, results: Mapping[str, Result], excused: Exclusion) -> dict[str, bool]:
    """Return for every clause that counts whether it passes; excluded clauses are missing."""
    found: dict[str, bool] = {}
    for name in policy.wanted():
        result = results.get(name)
        passed = result is not None and result.verdict is Verdict.PASS
        if not passed and result is not None and result.verdict is Verdict.NOT_APPLICABLE and excused(clauses()[name]):
            continue
        found[name] = passed
    return found


def _group(group: GroupPolicy, holds: Mapping[str, bool], results: Mapping[str, Result], policy: Policy) -> Group:
    counted = [name for name in group.clauses if name in holds]
    passed = sum(holds[name] for name in counted)
    required = tuple(name for name in group.required if holds.get(name, True) is False)
    blocked = [n for n in counted if n in results and results[n].verdict is Verdict.BLOCKED]
    lines: list[str] = []
    if group.credit == "parts":
        share, lines = _share_of_parts(group, counted, holds, results, policy)
    else:
        share = _share(passed, len(counted), _halves(blocked, results, policy), policy)
    if group.credit == "all":
        share = float(passed == len(counted) > 0)
    ended = [name for name in _ended(policy, results, "group") if name in counted]
    if required or ended:
        share = 0.0
    why = [f"all or nothing: {len(counted) - passed} of {len(counted)} do not pass"] if group.credit == "all" else []
    why = why if passed < len(counted) else []
    why += lines
    why += [f"{name} ended in a {results[name].verdict}: no points for this group" for name in ended]
    why += _blocked_lines(blocked, results, policy) if group.credit != "all" and not required and not ended else []
    return Group(
        name=group.name,
        title=group.title,
        points=group.points * share,
        max_points=group.points if counted else 0.0,
        clauses=len(counted),
        passed=passed,
        required=required,
        failed=tuple(name for name in counted if not holds[name]),
        why=tuple(why),
    )


def _halves(blocked: Sequence[str], results: Mapping[str, Result], policy: Policy) -> int:
    """Return how many of the blocked clauses count half, or not at all with `free`."""
    if policy.blocked != "own":
        return len(blocked)
    return sum(not _own(results[name]) for name in blocked)


def _own(result: Result) -> bool:
    """Whether a clause is blocked by one about its own component, or by none that is known."""
    cause = clauses().get(result.blocked_by)
    return cause is None or cause.component == result.clause.component


def _share_of_parts(
    group: GroupPolicy, counted: Sequence[str], holds: Mapping[str, bool], results: Mapping[str, Result], policy: Policy
) -> tuple[float, list[str]]:
    """Return the share of the parts that work, and which do not; something that fails limits it."""
    parts = parts_of([clauses()[name] for name in counted])
    each = {
        part: _worth([name for name in ids if not holds[name]], ids, results, policy) for part, ids in parts.items()
    }
    worth = {part: value for part, value in each.items() if value is not None}
    works = sum(value == 1 for value in worth.values())
    halves = min(sum(worth.values()) - works, works)  # nothing comes from nothing
    share = (works + halves) / len(worth) if worth else 0.0
    broken = [part for part, value in worth.items() if value < 1]
    if not broken:
        return share, []
    lines = [
        f"{works} of {count(len(worth), 'part')} {'works' if works == 1 else 'work'}; not: {listed(broken, _NAMED)}"
    ]
    main = [name for part, ids in parts.items() if part not in SIDE for name in ids if not holds[name]]
    if any(name not in results or _fails(results[name]) for name in main) and share > group.cap:
        share = group.cap
        lines.append(f"something fails, so it gives at most {100 * group.cap:g} % of its points")
    return share, lines


def _fails(result: Result) -> bool:
    """Whether a clause without a pass shows a mistake: not one that waits, or about an option that is not there."""
    if result.verdict is Verdict.NOT_APPLICABLE:
        return _OPTIONS.isdisjoint(result.clause.applies)
    return result.verdict is not Verdict.BLOCKED


def _worth(lost: Sequence[str], part: Sequence[str], results: Mapping[str, Result], policy: Policy) -> float | None:
    """Return what a part counts: 1 if all of it passes, ½ if it waits for something else, None if it is left out."""
    if not lost:
        return 1.0
    if not all(name in results and results[name].verdict is Verdict.BLOCKED for name in lost):
        return 0.0
    if policy.blocked == "free":
        return 1.0 if len(lost) < len(part) else None
    halves = policy.blocked == "half" or (policy.blocked == "own" and not any(_own(results[name]) for name in lost))
    return 0.5 if halves else 0.0


def _share(passed: int, counted: int, blocked: int, policy: Policy) -> float:
    """Return the share of a group's points."""
    if policy.blocked == "free":
        counted -= blocked
    elif policy.blocked in {"half", "own"}:
        return (passed + min(blocked / 2, passed)) / counted if counted else 0.0
    return passed / counted if counted else 0.0


def _blocked_lines(blocked: Sequence[str], results: Mapping[str, Result], policy: Policy) -> Iterator[str]:
    """Yield what was not judged because of which clause, and what that counts."""
    causes: dict[str, list[str]] = {}
    for name in blocked:
        causes.setdefault(results[name].blocked_by or "an earlier clause", []).append(name)
    for cause, names in causes.items():
        yield f"{count(len(names), 'clause')} blocked by {cause}: {_COUNTS[policy.blocked]}"


def _ended(policy: Policy, results: Mapping[str, Result], loss: str) -> list[str]:
    """Return the clauses that ended in a crash or timeout that costs their group, or everything."""
    kinds = {Verdict.CRASH: policy.losses.crash, Verdict.TIMEOUT: policy.losses.timeout}
    counted = {clause for group in policy.groups for clause in group.clauses}
    return [name for name, result in results.items() if kinds.get(result.verdict) == loss and name in counted]


def _notes(
    policy: Policy, groups: Sequence[Group], results: Mapping[str, Result], failed: Sequence[str]
) -> Iterator[str]:
    for loss, cost in (("group", "its group"), ("all", "everything")):
        for name in _ended(policy, results, loss):
            yield f"{name} ended in a {results[name].verdict}, which costs {cost}"
    silent = [n for n in failed if n in results and results[n].verdict is Verdict.NOT_APPLICABLE]
    for option in sorted({name for n in silent for name in clauses()[n].applies.keys() & _OPTIONS}):
        lost = [n for n in silent if option in clauses()[n].applies]
        silent = [n for n in silent if n not in lost]
        yield (
            f"generate takes no {option.replace('-', '_')}: {count(len(lost), 'clause')} about it count as not passed; "
            f'where it is not asked for, the policy says lacking = ["{option}"] under [allow]'
        )
    if silent:
        sentence = "clauses that do not apply to this implementation count as not passed, unless the policy allows it"
        yield f"{sentence}: {listed(silent, _NAMED)}"
    senseless = [n for n in failed if n in results and results[n].outline == SENSELESS]
    if senseless:
        advice = "if the code looks right, report it as a mistake of the kit"
        yield f"{_SENSELESS}; {advice}: {listed(senseless, _NAMED)}"
    for group in groups:
        if not group.clauses:
            yield f"no clause of {group.title} applies to the declared variant"


def _emptied(group: Group) -> Group:
    return replace(group, points=0.0)
