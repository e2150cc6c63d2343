"""The suite inside other programs: a report for Python, clauses as test cases of another pytest suite."""

from __future__ import annotations

import atexit
import os
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, Unpack

from conformkit.conformance.api.live import module_of
from conformkit.conformance.diagnosis.choices import found_choices
from conformkit.conformance.diagnosis.undeclared import searched
from conformkit.conformance.engine.judge import Judge, Verdicts
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.needed import needed
from conformkit.conformance.engine.request import RunOptions, RunRequest, requested
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.markdown import as_markdown
from conformkit.conformance.report.wording import command
from conformkit.conformance.runner import empty_report, run
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause, clause, select

__all__ = ["ClauseBroken", "EmbeddedSuite", "check", "parametrize_with_clauses"]

F = TypeVar("F", bound=Callable[..., Any])


class ClauseBroken(AssertionError):
    """A binding clause fails; the text is what `conform run` prints about it."""

    def __init__(self, result: Result, report: Report) -> None:
        super().__init__(_story(result, report))
        self.result = result


class ShownReport(Report):
    """A report that a notebook shows as Markdown."""

    @classmethod
    def of(cls, report: Report) -> ShownReport:
        """Return the same report as an instance of this class."""
        return cls(**{each.name: getattr(report, each.name) for each in fields(report)})

    def _repr_markdown_(self) -> str:
        """Return the Markdown that a notebook shows."""
        return as_markdown(self)


def check(impl: object, **options: Unpack[RunOptions]) -> ShownReport:
    """Judge an implementation and return the report; options are those of `RunRequest` (profile, only, seed, …).

    `impl` is what `conform run --impl` takes, or a class or function with a name of the contract, or a mapping from
    such names: live objects are judged in this process, in isolation `none`, as in a notebook.

    Raises: LoadFailure if it cannot be loaded or bound, ConfigError if its conform.toml can't be used, ValueError
    for an object without a name of the contract.
    """
    if isinstance(impl, str | os.PathLike):
        return ShownReport.of(run(requested("check", os.fspath(impl), **options)))
    if options.setdefault("isolation", "none") != "none":
        raise ValueError(f"a live object can't move to isolation {options['isolation']}; put it into a file")
    with module_of(impl) as name:
        return ShownReport.of(run(requested("check", name, **options)))


class EmbeddedSuite:
    """An implementation that is loaded when the first clause is requested, and kept until `close`."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self._stack = ExitStack()
        self._open: tuple[Judge, Report] | None = None
        self._searched: set[str] = set()
        """Components in which undeclared choices were looked for."""
        self._final: dict[str, Result] = {}
        """All verdicts, once a choice was found: those under the choice, and one red line for it."""

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
        if self._final or about in self._searched or self.request.profile == "lm":
            return False
        self._searched.add(about)
        return bool(searched(self._opened()[0].implementation, [result]).entries())

    def _judge_under_choices(self) -> None:
        """Judge all selected clauses, as declared and then under the choices found: one stays red for each choice."""
        judge, _ = self._opened()
        results = [judge.result(item.id) for item in self.clauses()]
        self._final = {r.clause.id: r for r in found_choices(judge.implementation, results, self._again).results}

    def _again(self, clauses: Sequence[Clause], known: Sequence[Result]) -> list[Result]:
        implementation = self._opened()[0].implementation
        judge = Judge(implementation, tests(self.request.profile), seed=self.request.seed, verdicts=Verdicts.of(known))
        return [judge.result(item.id) for item in clauses]

    def settle(self, clause_id: str) -> Result:
        """Turn a verdict into pytest's: return it, skip with the reason, xfail a SHOULD, or raise."""
        return _settle(self.result(clause_id), self._opened()[1])

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
        self._searched.clear()
        self._final.clear()

    def clauses(self) -> list[Clause]:
        """Return the selected clauses."""
        return list(select(self.request.only, self.request.profile))


def _settle(result: Result, report: Report) -> Result:
    import pytest

    if result.verdict is Verdict.PASS:
        return result
    unusable = result.verdict is Verdict.NOT_RUN and result.clause.component in report.unusable
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

    Raises: UnknownClauseError for unknown ids, ValueError for ids that are not selected or lack a reason.
    """
    import pytest

    options.setdefault("folder", Path.cwd())
    suite = EmbeddedSuite(requested("parametrize_with_clauses", os.fspath(impl), **options))
    atexit.register(suite.close)
    items = suite.clauses()
    expected = _expected(expected_failures, {item.id for item in items})

    def case(item: Clause) -> Any:
        def check_clause() -> None:
            if item.id in expected:
                _insist(suite.result(item.id), expected[item.id])
            suite.settle(item.id)

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
            raise ValueError(f"{name} is expected to fail for the reason {reason!r}, want a string")
    return dict(table)


def _insist(result: Result, reason: str) -> None:
    """Fail if an expected failure does not happen: otherwise an outdated entry would stay unnoticed."""
    if result.verdict in {Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED, Verdict.NOT_RUN} and not result.unfinished:
        told = f"{result.clause.id} is expected to fail ({reason}), but is {result.verdict}: {result.reason}"
        raise AssertionError(f"{told}; remove it from the list")


def _story(result: Result, report: Report) -> str:
    item = result.clause
    lines = [f"{item.id} · {item.title}", result.message or result.reason, *result.details]
    lines += [f"where: {result.where}"] if result.where else []
    lines += [f"why:   {item.why}", f"fix:   {item.fix}", f"again: {command(report, item.id)}"]
    return "\n".join(lines)
