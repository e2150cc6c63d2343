"""A page for each group in which a student lost points: how they were counted, the evidence, and how to repeat it.

A student who disagrees brings this page, and nothing of anybody else is on it. It is made from the grade alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformkit.conformance.apps.grade.outputs import wording
from conformkit.conformance.apps.grade.outputs.student import TEMPLATES
from conformkit.conformance.apps.grade.record import Grade, Group
from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.markdown import code, escape, failure
from conformkit.conformance.report.pages import page
from conformkit.conformance.report.wording import command
from conformkit.conformance.text import count, number
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["Appeal", "appeals", "as_html", "as_markdown"]

ELSEWHERE = "What fails in other groups, and keeps clauses of this one from being judged"
NOT_FAILED = "Blocked clauses"
HIDDEN_SEED = "hidden by the instructor"
ALIKE = "The same inputs are drawn, so the numbers are the same too."
OTHERS = (
    "Graded inputs are hidden, so the command draws public ones: verdicts should be the same, and it shows all "
    "numbers. If a clause passes at home that fails here, the instructor can repeat it with the hidden seed."
)


@dataclass(frozen=True, slots=True)
class Appeal:
    """What a page shows about one group of one submission."""

    grade: Grade
    group: Group
    report: Report | None
    red: tuple[Result, ...] = ()
    """Clauses of the group that were judged and failed."""
    causes: tuple[Result, ...] = ()
    """Clauses outside the group that failed, so that some in it could not be judged."""
    unseen: tuple[str, ...] = ()
    """Clauses that failed, in no group of the policy, so that some in this one could not be judged."""
    others: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Clauses that did not pass for another reason: verdict, reason, ids."""

    @property
    def name(self) -> str:
        """The group's name for people."""
        return self.group.title or self.group.name

    @property
    def seed(self) -> str:
        """The seed of the graded inputs, in words."""
        return HIDDEN_SEED if self.grade.hidden or self.report is None else str(self.report.seed)

    @property
    def place(self) -> str:
        """Where the commands are run."""
        own = self.grade.own_name
        return "in the folder that you handed in" if own in {"", "."} else f"in the folder that contains {own}"

    @property
    def again(self) -> str:
        """The command that repeats what failed in the group; all of the code where nothing was judged."""
        if self.report is None:
            return shlex.join(["conform", "run", "--impl", self.grade.own_name or "."])
        wanted = [*(result.clause.id for result in (*self.red, *self.causes)), *self.unseen] or list(self.group.failed)
        return command(self.report, ",".join(wanted[:_NAMED])) if wanted else ""

    @property
    def worth(self) -> str:
        """What one clause of the group counts."""
        if not self.group.clauses or any(line.startswith("all or nothing") for line in self.group.why):
            return ""
        share = number(self.group.max_points / self.group.clauses)
        return f"{count(self.group.clauses, 'clause')} share {number(self.group.max_points)} points: {share} each"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How it was judged, as pairs of a label and a fact."""
        found = [("submission", self.grade.submission.source), ("sha256", self.grade.submission.digest)]
        if self.report is not None:
            run = self.report
            found += [
                ("judged as", f"profile {run.profile}, level {run.level.value}, {run.device}"),
                ("seed", self.seed),
            ]
        return [*found, ("versions", f"conformkit {kit_version()}, specification {SPEC_VERSION}")]


_NAMED = 20
"""Maximum number of clauses in one command."""


def appeals(grade: Grade, report: Report | None) -> Iterator[Appeal]:
    """Yield an appeal for each group in which points were lost; `report` is the parsed report of the grade."""
    results = {result.clause.id: result for result in report.results} if report is not None else {}
    for group in grade.groups:
        if group.points < group.max_points:
            found = [results[name] for name in group.failed if name in results]
            red = tuple(result for result in found if result.verdict.red)
            causes, unseen = _causes(results, found)
            yield Appeal(grade, group, report, red, causes, unseen, tuple(_together(group, found)))


def _causes(results: Mapping[str, Result], found: Sequence[Result]) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """Return the failures outside a group because of which clauses in it were not judged; ids of those not reported."""
    causes: dict[str, Result] = {}
    unseen: dict[str, None] = {}
    for result in found:
        cause, seen = result, set[str]()
        while cause.blocked_by in results and cause.blocked_by not in seen:
            seen.add(cause.blocked_by)
            cause = results[cause.blocked_by]
        if cause.verdict.red:
            causes[cause.clause.id] = cause
        elif cause.blocked_by and cause.blocked_by not in results:
            unseen[cause.blocked_by] = None
    own = {one.clause.id for one in found}
    return tuple(cause for name, cause in causes.items() if name not in own), tuple(unseen)


def _together(group: Group, found: Sequence[Result]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the clauses that are not red, in groups of one reason."""
    ids: dict[tuple[str, str], list[str]] = {}
    for result in found:
        if not result.verdict.red:
            why = f"not checked until {result.blocked_by} passes" if result.blocked_by else result.reason
            ids.setdefault((result.verdict.value, why), []).append(result.clause.id)
    known = {result.clause.id for result in found}
    if left := [name for name in group.failed if name not in known]:
        ids["not run", ""] = left
    for (verdict, why), names in ids.items():
        yield verdict, why, tuple(names)


def as_html(appeal: Appeal, title: str = "") -> str:
    """Return a page of one file; `title` is the policy's."""
    return page(
        "appeal.html", TEMPLATES, appeal=appeal, grade=appeal.grade, group=appeal.group, report=appeal.report,
        title=title, told=wording, elsewhere=ELSEWHERE, not_failed=NOT_FAILED,
        repeated=OTHERS if appeal.grade.hidden else ALIKE,
    )  # fmt: skip


def as_markdown(appeal: Appeal, title: str = "") -> str:
    """Return the same as Markdown."""
    grade, group = appeal.grade, appeal.group
    parts = [f"# {escape(appeal.name)}: {wording.points_line(group.points, group.max_points)}"]
    parts += [f"{code(grade.submission.name)}{f', {escape(title)}' if title else ''}"]
    parts += ["\n".join(f"- {label}: {code(fact)}" for label, fact in appeal.facts)]
    parts += ["## How the points were counted"]
    counted = [wording.outcome_line(grade), wording.required_line(grade.required, "the whole submission")]
    counted += [wording.group_line(group), appeal.worth]
    parts += ["\n".join(f"- {code(line)}" for line in counted if line)]
    if appeal.report is not None and appeal.red:
        parts += ["## What fails", *(failure(appeal.report, result, 3) for result in appeal.red)]
    if appeal.report is not None and appeal.causes:
        parts += [f"## {ELSEWHERE}", *(failure(appeal.report, result, 3) for result in appeal.causes)]
    if appeal.others:
        parts += [f"## {NOT_FAILED}"]
        parts += ["\n".join(f"- {_other(*entry)}" for entry in appeal.others)]
    if appeal.again:
        parts += [f"## Repeat it\n\nRun this {escape(appeal.place)}:"]
        parts += [f"again: {code(appeal.again)}"]
        parts += [escape(OTHERS if grade.hidden else ALIKE)] if appeal.report is not None else []
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _other(verdict: str, why: str, ids: Sequence[str]) -> str:
    reason = f": {code(why)}" if why else ""
    return f"{count(len(ids), 'clause')} {verdict}{reason} ({escape(', '.join(ids))})"
