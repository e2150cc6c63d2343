"""The suite inside other programs: clauses as test cases of another pytest suite."""

from __future__ import annotations

import atexit
import os
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar, Unpack

from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.diagnosis.causes import CausesUnknownError, explained
from conformkit.conformance.diagnosis.undeclared import searched
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.judge import Judge, Verdicts
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.needed import needed
from conformkit.conformance.engine.request import RunOptions, RunRequest, requested
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.causes import labelled
from conformkit.conformance.report.wording import command
from conformkit.conformance.runner import empty_report
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause, clause, select
from conformkit.spec.profiles import named_profile

__all__ = ["ClauseBroken", "EmbeddedSuite", "parametrize_with_clauses"]

F = TypeVar("F", bound=Callable[..., Any])


class ClauseBroken(AssertionError):
    """A binding clause fails; the text is what `conform run` prints about it, the numbers first."""

    __module__ = "builtins"  # as pytest's own outcomes: in a summary of 80 columns a long name hides the numbers

    def __init__(self, result: Result, report: Report) -> None:
        super().__init__(_story(result, report))
        self.result = result


class EmbeddedSuite:
    """An implementation that is loaded when the first clause is requested, and kept until `close`."""

    def __init__(self, request: RunRequest) -> None:
        if "," in request.profile:
            raise ValueError(f"one profile at a time is judged here, not {request.profile}")
        self.request = request
        self._stack = ExitStack()
        self._open: tuple[Judge, Report] | None = None
        self._searched: set[str] = set()
        """Components in which undeclared choices were looked for."""
        self._warm: SharedFactory | None = None
        self._causes: dict[str, dict[str, Result]] = {}
        """By component, the results with the known mistakes in them."""
        self._final: dict[str, Result] = {}
        """All verdicts, once a choice was found: those under the choice, and one red line for it."""
        self._problem: str | None = None

    def result(self, clause_id: str) -> Result:
        """Return the verdict on one clause; under an undeclared choice that the numbers show, as `conform run` does."""
        if clause_id not in self._final:
            result = self._opened()[0].result(clause_id)
            if result.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED}:
                return result
            if not self._shows_a_choice(result):
                return result
            self._judge_under_choices()
        return self._final.get(clause_id) or self._opened()[0].result(clause_id)

    def _shows_a_choice(self, result: Result) -> bool:
        """Whether the component of a clause, or of the clause that blocks it, made an undeclared choice."""
        about = clause(result.blocked_by).component if result.blocked_by else result.clause.component
        if self._final or about in self._searched or not named_profile(self.request.profile).has_parts:
            return False
        self._searched.add(about)
        return bool(searched(self._opened()[0].implementation, [result]).entries())

    def _judge_under_choices(self) -> None:
        """Judge all selected clauses, as declared and then under the choices found: one stays red for each choice."""
        judge, _ = self._opened()
        self._final = self._named([judge.result(item.id) for item in self.clauses()], undeclared=True)

    def _again(self, clauses: Sequence[Clause], known: Sequence[Result]) -> list[Result]:
        implementation = self._opened()[0].implementation
        judge = Judge(implementation, tests(self.request.profile), seed=self.request.seed, verdicts=Verdicts.of(known))
        return [judge.result(item.id) for item in clauses]

    def settle(self, clause_id: str, *, expected: bool = False) -> Result:
        """Turn a verdict into pytest's: return it, skip with the reason, xfail a SHOULD, or raise.

        The cause of an `expected` failure is not looked for.
        """
        __tracebackhide__ = True
        result, report = self.result(clause_id), self._opened()[1]
        return _settle(result if expected or not report.breaks(result) else self._explained(result), report)

    def _explained(self, result: Result) -> Result:
        """Return a failure with the known mistake that it looks like, looked for once in each component."""
        if not result.verdict.red or self._final or not self.request.diagnose:
            return result
        about = result.clause.component
        if about not in self._causes:
            own = [self.result(item.id) for item in self.clauses() if item.component == about]
            self._causes[about] = {} if self._final else self._named(own, undeclared=False)
        return self._causes[about].get(result.clause.id, result)

    def _named(self, results: Sequence[Result], *, undeclared: bool) -> dict[str, Result]:
        """Return the results with their causes as a run has them, as many as are found."""
        named, implementation = results, self._opened()[0].implementation
        with suppress(CausesUnknownError):
            for judged, causes in explained(
                self.request, results, implementation, self._again, None, self._trusted, undeclared=undeclared
            ):
                named = causes.results or judged
        return {each.clause.id: each for each in named}

    def _trusted(self) -> WorkerFactory:
        """Return the process that forks references with mistakes in them, started once."""
        if self._warm is None:
            self._warm = SharedFactory(worker_factory(self.request.limits.threads, torch=True))
            self._stack.callback(self._warm.close)
        return self._warm

    def problem(self) -> str:
        """Return why nothing can be judged, and what to do; empty if something can. It is tried once."""
        if self._problem is None:
            self._problem = ""
            try:
                self._opened()
            except LoadFailure as failure:
                lines = (f"{self.request.impl} could not be loaded: {failure.problem}", failure.where, *failure.advice)
                self._problem = "\n".join(line for line in lines if line)
            except ConfigError as error:
                self._problem = str(error)
            except IsolationUnavailable as reason:
                self._problem = "\n".join([str(reason), *reason.advice])
        return self._problem

    def _opened(self) -> tuple[Judge, Report]:
        if self._open is None:
            implementation, location = self._stack.enter_context(
                opened(self.request, components=needed(self.request, self.clauses()))
            )
            judge = Judge(implementation, tests(self.request.profile), seed=self.request.seed)
            self._open = judge, empty_report(self.request, implementation, location)
        return self._open

    def close(self) -> None:
        """End the worker."""
        self._stack.close()
        self._open = None
        self._warm = None
        self._searched.clear()
        self._causes.clear()
        self._final.clear()
        self._problem = None

    def clauses(self) -> list[Clause]:
        """Return the selected clauses."""
        return list(select(self.request.only, self.request.profile))


def _settle(result: Result, report: Report) -> Result:
    __tracebackhide__ = True
    import pytest

    if result.verdict is Verdict.PASS:
        return result
    parts = {name.partition(".")[0] for name in report.unusable}
    unusable = result.verdict is Verdict.NOT_RUN and result.clause.component in parts
    if result.verdict.red or result.unfinished or unusable:
        if report.breaks(result):
            raise ClauseBroken(result, report)
        return pytest.xfail(f"{result.clause.level}: {result.message or result.reason}")
    return pytest.skip(f"{result.verdict}: {result.reason}")


def parametrize_with_clauses(
    impl: str | os.PathLike[str],
    *,
    expected_failures: Mapping[str, str] | str | os.PathLike[str] | None = None,
    **options: Unpack[RunOptions],
) -> Callable[[F], F]:
    """Give a test of your own suite one case per clause; the test calls its argument `check_clause`.

        @parametrize_with_clauses("mypkg", expected_failures={"PE-ODD-D": "odd widths are out of scope"})
        def test_conformance(check_clause):
            check_clause()

    `expected_failures` may be a TOML file with such lines: `PE-ODD-D = "odd widths are out of scope"`. It is strict: an
    expected failure that passes, does not apply, or ends in another way fails the test.

    Raises: UnknownClauseError for unknown ids and those of other profiles, ValueError for a profile that is unknown or
    more than one, and for expected failures that are not selected or lack a reason, TypeError for an object instead of
    a name or a path.
    """
    import pytest

    given: object = impl
    if not isinstance(given, str | os.PathLike):
        name, module = getattr(given, "__name__", type(given).__name__), getattr(given, "__module__", "mypkg")
        problem = f"parametrize_with_clauses takes the name or the path of a package, not the object {name}"
        raise TypeError(f'{problem}: write "{str(module).partition(".")[0]}", or judge the object by check({name})')
    options.setdefault("folder", Path.cwd())
    suite = EmbeddedSuite(requested("parametrize_with_clauses", os.fspath(impl), **options))
    atexit.register(suite.close)
    items = suite.clauses()
    expected = _expected(expected_failures, {item.id for item in items})

    def case(item: Clause) -> Any:
        def check_clause() -> None:
            __tracebackhide__ = True
            if problem := suite.problem():
                pytest.fail(problem, pytrace=False)
            if item.id in expected:
                _insist(suite.result(item.id), expected[item.id])
            suite.settle(item.id, expected=item.id in expected)

        reason = expected.get(item.id, "")
        marks = [pytest.mark.xfail(reason=reason, strict=True, raises=ClauseBroken)] if reason else []
        return pytest.param(check_clause, id=item.id, marks=marks)

    return pytest.mark.parametrize("check_clause", [case(item) for item in items])


def _expected(given: Mapping[str, str] | str | os.PathLike[str] | None, asked: Collection[str]) -> dict[str, str]:
    """Return expected failures with their reasons, from a mapping or a TOML file of such lines."""
    if given is None:
        return {}
    table = given if isinstance(given, Mapping) else tomllib.loads(Path(given).read_text(encoding="utf-8"))
    for name, reason in table.items():
        if clause(name).id != name or name not in asked:
            raise ValueError(f"{name} is expected to fail but is not among the selected clauses")
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"{name} is expected to fail for the reason {reason!r}, expected a string")
    return dict(table)


def _insist(result: Result, reason: str) -> None:
    """Fail if an expected failure does not happen: otherwise an outdated entry would stay unnoticed."""
    if result.verdict in {Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED, Verdict.NOT_RUN} and not result.unfinished:
        sentence = f"{result.clause.id} is expected to fail ({reason}), but is {result.verdict}: {result.reason}"
        raise AssertionError(f"{sentence}; remove it from the list")


def _story(result: Result, report: Report) -> str:
    """Return the text of a failure; its first line stands in pytest's summary, next to the clause's id."""
    item = result.clause
    lines = [result.message or result.reason or item.title, *result.details, f"{item.id} · {item.title}"]
    lines += [f"{label} {fact}" for label, fact in labelled(report, result)]
    return "\n".join([*lines, f"again: {command(report, item.id)}"])
