"""The table of what mistakes cost: the default policy is calibrated by it."""

import importlib.util
from pathlib import Path
from statistics import median

from conformkit.conformance.apps.grade.policy_file import READY, ready
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.spec.clauses import clause

DOCS = Path(__file__).resolve().parents[3] / "docs"


def page_maker():
    spec = importlib.util.spec_from_file_location("points_of_mistakes", DOCS / "points.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_complete_and_common_mistakes_in_attention_cost_what_they_should():
    """Would break if a policy were changed without measuring, or what does not work were worth an A."""
    points = page_maker()
    rows = points.rows((DOCS / "grading.md").read_text(encoding="utf-8"))
    assert list(rows) == points.mistakes()
    assert len(rows) >= 30
    course = [rows[name][READY.index("course")] for name in rows if points.in_attention(name)]
    assert 15 <= median(course) <= 35
    assert min(course) >= 5
    assert all(strict >= usual >= kind for strict, usual, kind in rows.values())


def test_points_are_counted_from_results_alone():
    """Would break if the command that makes the table could not make it."""
    passed = [Result(clause(name), Verdict.PASS) for name in ready("course").wanted()]
    assert page_maker().points(passed, [ready(name) for name in READY]) == [100, 100, 100]
