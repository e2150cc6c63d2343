"""Mistakes that were found in real libraries, each in a small package of our own: caught, and named with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests as suite

HERE = Path(__file__).parent
BUGS = sorted(file.parent for file in HERE.glob("*/bug.toml"))


@pytest.mark.parametrize("folder", BUGS, ids=lambda folder: folder.name)
def test_the_mistake_is_caught_and_named_with_its_line(folder: Path, warm: LentFactory) -> None:
    bug = tomllib.loads((folder / "bug.toml").read_text(encoding="utf-8"))
    with opened(RunRequest(impl=str(folder), only=tuple(bug["clauses"])), warm) as (implementation, _):
        judge = Judge(implementation, suite("core"), seed=0)
        found = [judge.result(name) for name in bug["clauses"]]
    for result in found:
        assert result.verdict.red, result
        assert bug["names"] in result.message
        assert f"{folder.name}/{bug['line']} in " in result.message


def test_each_names_its_row_and_a_thread() -> None:
    told = [tomllib.loads((folder / "bug.toml").read_text(encoding="utf-8")) for folder in BUGS]
    assert all(folder.name.startswith(f"row_{bug['row']}_") for folder, bug in zip(BUGS, told, strict=True))
    assert all(thread.count("#") == 1 for bug in told for thread in bug["threads"])
    assert BUGS
