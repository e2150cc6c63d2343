"""Each level includes those above it: what fails at SHOULD fails at MAY."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance import runner
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.tally import tally
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level, clause
from tests.report.samples import make_report, make_result

MUST, SHOULD, MAY = Level


@pytest.mark.parametrize(
    ("of_clause", "binds"),
    [(MUST, {MUST, SHOULD, MAY}), (SHOULD, {SHOULD, MAY}), (MAY, {MAY})],
    ids=lambda value: value.value if isinstance(value, Level) else "",
)
def test_a_red_clause_breaks_at_its_level_and_below(of_clause, binds):
    """MAY was laxer than SHOULD once: 0, 1, 0 for a package that fails one SHOULD."""
    red = replace(make_result(Verdict.FAIL), clause=replace(clause("SDPA-SCALE"), level=of_clause))
    right = make_result(Verdict.PASS, "SDPA-OUT-SHAPE")
    reports = [replace(make_report(right, red), level=level) for level in Level]
    assert {report.level for report in reports if not report.conforms} == binds
    assert {report.level for report in reports if sum(one.asked for one in tally(report)) == 2} == binds


@pytest.mark.parametrize(("asked", "searched"), [(True, 1), (False, 0)], ids=["causes", "verdicts-alone"])
def test_causes_of_warnings_are_searched_where_causes_are_asked_for(
    asked: bool, searched: int, attention_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if a run that conforms spent seconds on causes that nobody asked for, or named none."""
    found: list[bool] = []
    monkeypatch.setattr(runner, "_explain", lambda *_, undeclared: found.append(undeclared))
    only = ("MASK-FULLROW-LOCAL", "MASK-FULLROW-FINITE")
    report = run(RunRequest(impl=str(attention_file), only=only, diagnose=asked))
    assert report.conforms
    assert [result.clause.id for result in report.results if result.verdict.red] == ["MASK-FULLROW-FINITE"]
    assert found == [False] * searched
