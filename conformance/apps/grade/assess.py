"""One submission, from bytes to a grade: unpack, choose what is judged, judge it, count."""

from __future__ import annotations

import keyword
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformkit.conformance.apps.grade.advice import WATCHING, advise
from conformkit.conformance.apps.grade.baseline import Baseline
from conformkit.conformance.apps.grade.choice import Choice, choose
from conformkit.conformance.apps.grade.copies import fingerprints
from conformkit.conformance.apps.grade.declared import looked_at, paths, permitted
from conformkit.conformance.apps.grade.logs import log
from conformkit.conformance.apps.grade.notebook import convert
from conformkit.conformance.apps.grade.other_names import other_names, renamed, told_names
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.apps.grade.scoring import Score, empty_groups, excuses, score
from conformkit.conformance.apps.grade.scratch import new_folder, time_limit, without
from conformkit.conformance.apps.grade.submissions import Package
from conformkit.conformance.apps.grade.undeclared import declaring, of_booleans, told_choices, undeclared
from conformkit.conformance.apps.grade.unpack import Refused, SubmissionError, Unreadable, unpack
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.client.session import Limits
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox.bubblewrap import program
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.boundary import incomprehensible
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Clause, clauses
from conformkit.spec.components import components_of

__all__ = ["Finished", "GradingTask", "assess", "ungraded"]

_LOOK_SECONDS = 60.0
"""Unpacking and reading sources takes at most a second, unless a submission is built to take longer."""
_TAKEN = frozenset({"torch", "numpy", "conformkit", "safetensors", "implementation"})
Answers = dict[tuple[str, str], bool]


@dataclass(frozen=True, slots=True)
class GradingTask:
    """Everything that a process on any machine needs to grade one submission."""

    package: Package
    policy: Policy
    seed: int
    kit: str
    known: Answers = field(default_factory=dict)
    """Which clauses apply to the reference, as found by earlier tasks."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A grade, its log, and what was learned about the reference."""

    grade: Grade
    log: str
    learned: Answers = field(default_factory=dict)


def assess(task: GradingTask, scratch: Path, warm: Callable[[], WorkerFactory]) -> Finished:
    """Grade a submission in a separate folder below `scratch`. `warm` gives the process for trusted code.

    Raises IsolationUnavailable, StartError: errors that are not the submission's fault.
    """
    started = time.perf_counter()
    baseline = Baseline(dict(task.known), task.seed, warm)
    with new_folder(scratch) as folder:
        grade = _Case(task, folder, baseline, warm).grade()
    grade = replace(grade, seconds=time.perf_counter() - started)
    return Finished(grade, log(grade), baseline.learned)


def ungraded(task: GradingTask, outcome: SubmissionOutcome, message: str, notes: tuple[str, ...] = ()) -> Grade:
    """Return the grade of a submission that was not judged: 0 of all points."""
    return _not_judged(task, outcome, message, notes)


class _Case:
    """Grades one submission."""

    def __init__(self, task: GradingTask, folder: Path, baseline: Baseline, warm: Callable[[], WorkerFactory]) -> None:
        self._task, self._policy, self._baseline, self._warm = task, task.policy, baseline, warm
        self._root = folder / _root_name(task.package.submission.name)
        self._notes = list(task.package.notes)
        self._advice: list[Any] = []
        self._functions: tuple[str, ...] = ()

    def grade(self) -> Grade:
        """Return the grade of any submission."""
        try:
            return self._judged(self._looked_at())
        except SubmissionError as problem:
            return self._not_judged(problem.outcome, str(problem))
        except ConfigError as problem:
            return self._not_judged(SubmissionOutcome.NOT_LOADED, f"its {problem}")
        except LoadFailure as failure:
            outcome = SubmissionOutcome.TIMEOUT if failure.late else SubmissionOutcome.NOT_LOADED
            return self._not_judged(outcome, _reason(failure), failure.advice, failure.output)
        except IsolationUnavailable as problem:
            program()  # which raises it again, unless only this submission cannot be isolated
            return self._not_judged(SubmissionOutcome.REFUSED, str(problem))

    def _looked_at(self) -> Choice:
        """Unpack it, find the implementation, and read its declarations and imports."""
        try:
            with time_limit(_LOOK_SECONDS):
                return self._chosen()
        except (SubmissionError, ConfigError, OSError):
            raise  # OSError: the disk may be full
        except Exception as trouble:
            raise Unreadable(f"it cannot be read: {incomprehensible(trouble)}") from trouble

    def _chosen(self) -> Choice:
        package, policy = self._task.package, self._policy
        if package.problem is not None:
            raise package.problem
        self._root.mkdir()
        self._notes += unpack(package.data, package.kind, package.file, self._root, policy.archive)
        self._notes += convert(self._root)
        self._functions = fingerprints(self._root)
        choice = choose(self._root, policy.impl, own_config=not policy.conform, profile=policy.profile)
        self._notes += choice.notes
        if policy.conform:
            config = parse_config(policy.conform)
            config = replace(config, module=config.module or choice.config.module)
        else:
            config, ignored = permitted(choice.config, policy.allowed)
            self._notes += ignored
            _refuse_ours(choice.config)
        self._advice = advise(self._root, (*policy.forbidden, *WATCHING, "conformkit"), config)
        return replace(choice, config=config)

    def _judged(self, choice: Choice) -> Grade:
        policy = self._policy
        report, choice = self._report(choice)
        report = self._as_it_stands(report)
        late = not report.complete
        self._advice += [] if policy.conform else looked_at(report.excuses, policy.allowed)
        points = self._score(report, choice.config, late=late)
        place = str(choice.path.relative_to(self._root))
        report = replace(report, implementation=self._task.package.submission.name, location=place)
        return Grade(
            submission=self._task.package.submission,
            outcome=SubmissionOutcome.TIMEOUT if late else SubmissionOutcome.JUDGED,
            message=f"judging did not finish within {policy.limits.seconds:g} s" if late else "",
            points=points.points,
            max_points=points.max_points,
            groups=points.groups,
            required=points.required,
            advice=tuple(self._advice),
            notes=(*self._notes, *points.notes),
            excluded=points.excluded,
            functions=self._functions,
            counted=len(points.notes),
            hidden=policy.seed is None,
            report=self._told(as_object(report)),
            own_name=choice.own_name,
        )

    def _report(self, choice: Choice) -> tuple[Report, Choice]:
        """Judge it, and once more under the choices that it makes, does not declare and may make."""
        report, choice = self._by_name(choice)
        allowed = self._policy.allowed
        if self._policy.conform or not report.complete:
            return report, choice
        made, masks = undeclared(report, allowed), of_booleans(report, choice.config, allowed)
        if not made and masks is None:
            return report, choice
        again = replace(choice, config=declaring(masks or choice.config, made))
        left = self._policy.limits.seconds - report.seconds
        under = run(replace(self._request(again), seconds=left), trusted=self._warm) if left > 0 else report
        if not under.complete:
            return report, choice
        self._notes += told_choices(made)
        if masks is not None:
            self._notes.append("it reads float masks otherwise, which the policy allows: it gets Boolean ones only")
        return under, again

    def _by_name(self, choice: Choice) -> tuple[Report, Choice]:
        """Judge it; what is required and missing is looked for under other names, and judged if these count."""
        request = self._request(choice)
        try:
            report = run(request, trusted=self._warm)
        except LoadFailure as failure:
            found = {} if failure.late else other_names(request, _required(request))
            if not found:
                raise
            if self._policy.names == "exact":
                raise failure.advised(*told_names(found, judged=False)) from None
        else:
            found = other_names(request, report.missing)
        if not found:
            return report, choice
        counts = self._policy.names == "found"
        self._notes += told_names(found, judged=counts)
        if not counts:
            return report, choice
        choice = replace(choice, config=renamed(choice.config, found))
        return run(self._request(choice), trusted=self._warm), choice

    def _as_it_stands(self, report: Report) -> Report:
        """Return the report without what another object earned, or one that is called otherwise than it could be.

        As far as the policy does not allow that.
        """
        refused = {"path", "layout"} - {*self._policy.allowed.excuses}
        replaced = {found.component: found.words for found in report.excuses if found.kind in refused}
        self._notes += [
            f"{words}, which the policy does not allow; its clauses do not count" for words in replaced.values()
        ]
        results = [
            replace(r, verdict=Verdict.NOT_RUN, reason=replaced[r.clause.component])
            if r.clause.component in replaced
            else r
            for r in report.results
        ]
        return replace(report, results=results)

    def _request(self, choice: Choice) -> RunRequest:
        policy = self._policy
        return RunRequest(
            impl=str(choice.path), profile=policy.profile, level=policy.level, only=policy.wanted(),
            seed=self._task.seed, isolation=policy.isolation, config=choice.config, limits=_limits(policy),
            seconds=policy.limits.seconds, pause_deadline_when_busy=True, diagnose=policy.hints > 0, hints=policy.hints,
            hidden=policy.seed is None, forbid_kit_imports=True,
        )  # fmt: skip

    def _score(self, report: Report, config: Config, *, late: bool) -> Score:
        silent = [r.clause for r in report.results if r.verdict == "not applicable"]

        def applies(clause: Clause) -> bool:
            return self._baseline.applies(clause, config, together=silent)

        return score(report, self._policy, excuses(config, self._policy.allowed, applies), out_of_time=late)

    def _not_judged(
        self, outcome: SubmissionOutcome, message: str, advice: tuple[str, ...] = (), output: str = ""
    ) -> Grade:
        sentence = [line for line in advice if line] + ([f"it printed: {output}"] if output else [])
        notes = (*self._notes, *self._told(sentence))
        return _not_judged(self._task, outcome, self._told(message), notes, tuple(self._advice))

    def _told(self, value: Any) -> Any:
        return without(self._root, self._task.package.submission.name, value)


def _not_judged(
    task: GradingTask,
    outcome: SubmissionOutcome,
    message: str,
    notes: tuple[str, ...] = (),
    advice: tuple[Any, ...] = (),
) -> Grade:
    policy = task.policy
    return Grade(
        submission=task.package.submission, outcome=outcome, message=message, max_points=policy.max_points,
        groups=empty_groups(policy), advice=advice, notes=notes, hidden=policy.seed is None,
    )  # fmt: skip


def _required(request: RunRequest) -> list[str]:
    """Return the required components that a request asks about."""
    asked = {clauses()[name].component for name in request.only}
    return [name for name, part in components_of(request.profile).items() if part.required and name in asked]


def _limits(policy: Policy) -> Limits:
    own = policy.limits
    return Limits(
        call_seconds=own.call_seconds, load_seconds=min(own.load_seconds, own.seconds), memory_bytes=own.memory,
        output_bytes=own.output, threads=own.threads, processes=own.processes, file_bytes=own.file,
        tmp_bytes=own.disk,
    )  # fmt: skip


def _refuse_ours(config: Config) -> None:
    """Refuse a conform.toml that names the kit's own code: submitting the reference is not the student's work."""
    ours = next((path for path in paths(config) if path.partition(".")[0].partition(":")[0] == "conformkit"), None)
    if ours is not None:
        raise Refused(f"it declares {ours} as its own code, but that belongs to the kit")


def _reason(failure: LoadFailure) -> str:
    file, _, line = failure.where.rpartition(":")
    known = bool(file) and f"({file}, line {line})" in failure.problem  # as a SyntaxError says it
    return failure.problem + (f" ({failure.where})" if failure.where and not known else "")


def _root_name(name: str) -> str:
    """Return the name of the submission's folder: the original one, since modules may import each other by it."""
    usable = name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and len(name) <= 80
    taken = name in sys.stdlib_module_names or name in _TAKEN
    return name if usable and not taken else "submission"
