"""`--thorough`: hypothesis drives the tests, shrinks sizes, and keeps what fails outside the judged folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.engine.thorough import database, seek

from .conftest import ATTENTION, make_clause

CLAUSE = make_clause("ANY-SIZES", sizes={"tokens": (1, 600), "batch": (1, 64)})
FORMS = ("float32",)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def wrong_from(tokens: int, cases: list[dict[str, int]]):
    """Return the test of something that is wrong from a number of positions on; note each case."""

    def run(draw: Draw) -> None:
        for case in draw.cases(draw.domain, lambda _sizes: 0.0, 1.0):
            cases.append(case)
            if case["tokens"] >= tokens:
                raise ClauseFailure(f"wrong at T = {case['tokens']}, B = {case['batch']}")

    return run


def test_a_failure_is_found_and_made_small() -> None:
    cases: list[dict[str, int]] = []
    with pytest.raises(ClauseFailure, match=r"wrong at T = 257, B = 1$"):
        seek(CLAUSE, wrong_from(257, cases), FORMS, examples=100, start=0, stored=None)


def test_no_more_examples_are_tried_than_asked_for() -> None:
    cases: list[dict[str, int]] = []
    seek(CLAUSE, wrong_from(1000, cases), FORMS, examples=7, start=0, stored=None)
    assert 1 <= len(cases) <= 7


def test_what_failed_is_tried_first_the_next_time_and_lies_in_the_users_cache(cache: Path) -> None:
    cases: list[dict[str, int]] = []
    for _ in range(2):
        cases.clear()
        with pytest.raises(ClauseFailure):
            seek(CLAUSE, wrong_from(333, cases), FORMS, examples=100, start=0, stored=database("/own", CLAUSE))
    assert cases[0]["tokens"] >= 333, "the first example of the second search fails"
    assert [path for path in cache.rglob("*") if path.is_file()]


def test_what_applies_to_no_example_does_not_apply() -> None:
    def run(_draw: Draw) -> None:
        raise NotApplicable("it has no masks")

    with pytest.raises(NotApplicable, match="it has no masks"):
        seek(CLAUSE, run, FORMS, examples=5, start=0, stored=None)


def test_what_changes_from_call_to_call_is_a_failure() -> None:
    calls = iter(range(1000))

    def run(_draw: Draw) -> None:
        if next(calls) == 3:
            raise ClauseFailure("once")

    with pytest.raises(ClauseFailure, match="the same call gives another result"):
        seek(CLAUSE, run, FORMS, examples=20, start=0, stored=None)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_run_passes_with_more_examples_and_leaves_the_judged_folder_alone(tmp_path, cache, hidden) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "attention_only.py").write_text(ATTENTION, encoding="utf-8")
    report = check(own / "attention_only.py", only=("SDPA-FORMULA", "SDPA-SIZES"), thorough=4, hidden=hidden)
    assert not report.failures()
    assert report.extents()["ScaledDotProductAttention"]["tokens"][1] > 512
    assert {path.name for path in own.iterdir()} <= {"attention_only.py", "__pycache__"}
    assert not [path for path in cache.rglob("*") if hidden]
