"""The examples are what their names say: the wrong one has exactly three failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.engine.results import Verdict
from conformkit.spec.clauses import Level

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.full(guard="test_the_readme_shows_what_its_commands_print")
def test_three_mistakes_are_three_red_lines_and_the_rest_green_or_blocked():
    report = check(EXAMPLES / "three_mistakes")
    binding = {r.clause.id: r.verdict for r in report.results if r.clause.level is Level.MUST}
    red = {name for name, verdict in binding.items() if verdict.red}
    assert red == {"MHA-SCALE-DHEAD", "PE-EXPONENT", "GEN-TOPP-SUPPORT"}
    assert not report.conforms
    rest = {verdict for name, verdict in binding.items() if name not in red}
    assert rest <= {Verdict.PASS, Verdict.BLOCKED, Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize(
    "only",
    [pytest.param(("PE", "FFN"), id="two"), pytest.param(("MHA", "PE", "LM"), id="three", marks=pytest.mark.full)],
)
def test_two_workers_give_the_verdicts_of_one(only):
    alone, together = (check(EXAMPLES / "three_mistakes", processes=n, only=only) for n in (1, 2))
    assert [(r.clause.id, r.verdict, r.message) for r in alone.results] == [
        (r.clause.id, r.verdict, r.message) for r in together.results
    ]
