"""Which ids penalties count is a choice: declared, either is right, and nothing else passes under it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run

RIGHT = Path(__file__).resolve().parents[1] / "right_lm"
COUNTED = {
    "penalty_lists": {"PEN-PRESENCE-PROMPT", "PEN-FREQUENCY-PROMPT"},
    "processors": {"PEN-REP-LOGITS", "MINP-TEMP"},
}
"""Clauses that fail where the choices of a right implementation are not declared."""


def verdicts(folder: Path, only: set[str]) -> dict[str, Verdict]:
    report = run(RunRequest(impl=str(folder), profile="lm", only=tuple(sorted(only)), diagnose=False, processes=1))
    return {result.clause.id: result.verdict for result in report.results}


@pytest.mark.parametrize("style", COUNTED)
def test_what_is_declared_passes_and_what_is_not_fails(style: str, tmp_path: Path) -> None:
    """Would break if the prompt counted, or did not, whatever conform.toml says."""
    assert set(verdicts(RIGHT / style, COUNTED[style]).values()) == {Verdict.PASS}
    for name in COUNTED:
        shutil.copytree(RIGHT / name, tmp_path / name)
        (tmp_path / name / "conform.toml").unlink()
    assert set(verdicts(tmp_path / style, COUNTED[style]).values()) == {Verdict.FAIL}


def test_options_that_generate_does_not_take_are_not_judged() -> None:
    found = verdicts(RIGHT / "penalty_lists", {"TYP"})
    assert set(found.values()) == {Verdict.NOT_APPLICABLE}
