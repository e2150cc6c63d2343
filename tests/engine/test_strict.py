"""With --strict, what a declaration takes away is not passed; code that lacks something has declared nothing."""

from pathlib import Path

import pytest

from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.terminal import render
from conformkit.conformance.report.wording import verdict_line
from conformkit.conformance.runner import run

from .conftest import ATTENTION

ONLY = ("SDPA", "MASK")


def judged(folder: Path, declared: str = "", *, strict: bool = True, code: str = ATTENTION) -> Report:
    (folder / "own.py").write_text(code, encoding="utf-8")
    (folder / "conform.toml").write_text(declared, encoding="utf-8")
    return run(RunRequest(impl=str(folder / "own.py"), only=ONLY, strict=strict, diagnose=False))


def test_code_that_declares_nothing_conforms_with_strict_too(tmp_path: Path) -> None:
    # it lacks gradients, dropout and returned weights, which is no declaration
    report = judged(tmp_path)
    assert report.conforms
    assert not report.exempted()
    assert "within what it declares" not in verdict_line(report)


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        ("[components.ScaledDotProductAttention]\nmask = { kinds = ['bool'] }", "mask.kinds"),
        ("[components.ScaledDotProductAttention]\ncall = ['q', 'k', 'v']", "call"),
        ("[limits]\ntokens = { max = 3 }", "limits"),
    ],
    ids=["masks", "call", "limits"],
)
def test_what_a_declaration_takes_away_counts_with_strict_only(declared: str, key: str, tmp_path: Path) -> None:
    strict, plain = judged(tmp_path, declared), judged(tmp_path, declared, strict=False)
    assert (strict.conforms, plain.conforms) == (False, True)
    assert all(key in result.exempted_by for result in strict.exempted())
    assert "skipped in full or in part because of conform.toml" in verdict_line(strict)
    judged_clauses, binding = plain.coverage()
    assert f"within what it declares: {judged_clauses} of {binding} binding clauses were judged" in verdict_line(plain)


def test_excuses_stand_in_the_head_of_each_report_and_survive_json(tmp_path: Path) -> None:
    report = judged(tmp_path, "[components.ScaledDotProductAttention]\nmask = { kinds = ['bool'] }", strict=False)
    told = "ScaledDotProductAttention takes bool masks only"
    found = as_object(report)
    assert [excuse["words"] for excuse in found["declared"]["excuses"]] == [told]
    assert set(found["declared"]["exempted"]) == {result.clause.id for result in report.exempted()}
    assert told in render(report, 120).partition("\n\n")[0]
    again = from_object(found)
    assert (verdict_line(again), again.excuses) == (verdict_line(report), report.excuses)
