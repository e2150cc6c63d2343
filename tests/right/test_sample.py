"""Right code that is judged in each run of the tests, whatever changed: a clause of each of its components."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.engine.results import Verdict

CLAUSES = ("SDPA-FORMULA", "MHA-ORACLE", "FFN-ORACLE", "BLOCK-ORACLE", "LM-ORACLE")
"""The numbers of each part and of the whole; all clauses, and other packages, in test_right.py."""


@pytest.mark.concerned
@pytest.mark.parametrize("name", ["llama"])
def test_the_parts_of_a_right_package_and_the_whole_conform(name: str) -> None:
    """Would break if right code with other names, shapes and choices were red: a false alarm."""
    report = check(Path(__file__).parent / name, only=CLAUSES, diagnose=False)
    assert [result for result in report.results if result.verdict.red] == []
    passed = {result.clause.id for result in report.results if result.verdict is Verdict.PASS}
    assert passed.issuperset(CLAUSES)
