"""Baselines: known failures change the exit code and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.baseline import NotABaseline, read_baseline, updated
from conformkit.conformance.report.github import commands
from conformkit.conformance.report.html import as_html
from conformkit.conformance.report.json_report import as_object, schema
from conformkit.conformance.report.junit import as_junit
from conformkit.conformance.report.markdown import as_markdown
from conformkit.conformance.report.sarif import as_sarif
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.terminal import render
from conformkit.conformance.report.wording import verdict_line
from tests.report.samples import make_report, make_result

FAILS, BLOCKED, PASSES = "SDPA-SCALE", "SDPA-FORMULA", "SDPA-MASK-CAUSAL"


def report(known: dict[str, str] | None = None, **verdicts: Verdict) -> Report:
    found = {FAILS: Verdict.FAIL, BLOCKED: Verdict.BLOCKED, PASSES: Verdict.PASS}
    found |= {name.replace("_", "-"): verdict for name, verdict in verdicts.items()}
    results = [make_result(verdict, name, message="it is 1") if verdict.red else make_result(verdict, name)
               for name, verdict in found.items()]  # fmt: skip
    made = make_report(*results, missing=[], unusable={}, undeclared=[], complete=True, late="")
    return replace(made, known=known, baseline="" if known is None else "b.json")


ALL = {FAILS: "fail", BLOCKED: "blocked"}


def test_known_failures_settle_a_run_and_never_make_it_conform() -> None:
    found = report(ALL)
    assert found.settled
    assert not found.conforms
    assert "does not conform" in verdict_line(found)
    assert "nothing new: all of it is in b.json" in verdict_line(found)


def test_without_a_baseline_nothing_is_settled() -> None:
    assert not report().settled
    assert "b.json" not in verdict_line(report())


def test_a_failure_that_is_not_listed_is_new() -> None:
    found = report({BLOCKED: "blocked"})
    assert not found.settled
    assert f"new, not in b.json: {FAILS}" in verdict_line(found)


@pytest.mark.parametrize(("complete", "new"), [(True, [FAILS, BLOCKED, "SDPA-SHAPE"]), (False, [FAILS, BLOCKED])])
def test_failures_are_the_first_of_what_is_new_and_what_was_not_reached_is_not(complete: bool, new: list[str]) -> None:
    """Would break if a run that ends at its first failure called each clause after it new, or blocked ones hid it."""
    found = report({}, SDPA_SHAPE=Verdict.NOT_RUN)
    found = replace(found, results=found.results[::-1], complete=complete)
    assert {r.clause.id for r in found.fresh()} == set(new)
    assert found.fresh()[0].clause.id == FAILS


def test_what_was_blocked_and_fails_now_is_new() -> None:
    assert [r.clause.id for r in report({FAILS: "blocked", BLOCKED: "blocked"}).fresh()] == [FAILS]


def test_what_failed_and_is_blocked_now_is_known() -> None:
    assert report({FAILS: "fail", BLOCKED: "error"}).settled


def test_what_passes_now_is_told_to_be_removed() -> None:
    found = report({**ALL, PASSES: "fail"})
    assert found.settled
    assert f"remove from b.json (--update-baseline does): {PASSES}" in verdict_line(found)


@pytest.mark.parametrize(
    "changes", [{"missing": ["FeedForward"]}, {"complete": False}], ids=["a missing part", "an incomplete run"]
)
def test_what_was_not_judged_is_never_settled(changes: dict[str, object]) -> None:
    assert not replace(report(ALL), **changes).settled  # type: ignore[arg-type]


def test_an_updated_file_holds_what_broke_and_keeps_what_was_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(updated(report({"PE-ODD-D": "fail", PASSES: "fail"})), encoding="utf-8")
    assert read_baseline(path) == {**ALL, "PE-ODD-D": "fail"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "is not JSON"),
        ('{"known": {}}', "not an object of schema"),
        ('{"schema": "conformkit.baseline/1", "known": {"SDPA-SCAL": "fail"}}', "nearest: SDPA-SCALE"),
        ('{"schema": "conformkit.baseline/1", "known": {"SDPA-SCALE": 1}}', "expected one of"),
    ],
    ids=["text", "another object", "an unknown clause", "no verdict"],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotABaseline, match=words):
        read_baseline(path)


def test_every_form_of_a_report_tells_known_failures_from_new_ones() -> None:
    found, without = report(ALL), report()
    jsonschema.validate(as_object(found), schema())
    assert from_object(as_object(found)).settled
    assert f"KNOWN {FAILS}" in render(found)
    assert f"FAIL {FAILS}" not in render(found)
    assert "Known failures, in b.json" in as_markdown(found)
    assert "What fails" not in as_markdown(found)
    assert "Known failures, in b.json" in as_html(found)
    assert ">What fails<" not in as_html(found)
    assert [line.partition(" ")[0] for line in commands(found)] == ["::warning"]
    assert [line.partition(" ")[0] for line in commands(without)] == ["::error", "::error"]


def test_junit_has_no_red_case_for_what_is_known() -> None:
    assert ET.fromstring(as_junit(report(ALL))).get("failures") == "0"
    assert ET.fromstring(as_junit(report({}))).get("failures") == "1"


def test_sarif_suppresses_what_is_known_and_nothing_else() -> None:
    def suppressed(found: Report) -> list[bool]:
        return ["suppressions" in result for result in json.loads(as_sarif(found))["runs"][0]["results"]]

    assert suppressed(report(ALL)) == [True]
    assert suppressed(report({BLOCKED: "blocked"})) == [False]
