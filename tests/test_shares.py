"""What takes turns in CI: clauses about every size for right code, cases of dear families; what changed runs anyway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformkit.spec.clauses import clauses_of

from . import tiers
from .costs import Costs
from .shares import CASES, FEW, SHARES, left_out, share, waiting

RIGHT = Path(__file__).resolve().parent / "right"
SIZED = {name for name, clause in clauses_of("core").items() if clause.sizes}
NAMES = ["llama", "gemma", "head_loop", "torch_layers", "annotated"]
"""Of each remainder, some."""


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFORM_SIZES", "CONFORM_SEED", CASES, tiers.CHANGED):
        monkeypatch.delenv(name, raising=False)


def met(name: str, files: Path | None = None) -> set[str]:
    return SIZED - set(left_out(name, "core", files))


@pytest.mark.parametrize("name", NAMES)
def test_a_package_meets_all_of_them_in_three_seeds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if some clause were left out for good."""
    found: list[set[str]] = []
    for seed in range(SHARES):
        monkeypatch.setenv("CONFORM_SEED", str(seed))
        found.append(met(name))
        assert len(SIZED) // SHARES <= len(found[-1]) <= len(SIZED) // SHARES + 1
    assert set().union(*found) == SIZED


def test_each_clause_is_met_by_some_package_each_time() -> None:
    assert set().union(*map(met, NAMES)) == SIZED


def test_only_clauses_about_every_size_are_left_out() -> None:
    assert set(left_out("llama", "core")) < SIZED


def test_all_are_met_at_night(monkeypatch: pytest.MonkeyPatch) -> None:
    before = share("llama", "core")
    monkeypatch.setenv("CONFORM_SIZES", "all")
    assert left_out("llama", "core") == ()
    assert share("llama", "core") != before


@pytest.mark.parametrize("file", ["spec/positional_encoding.md", "conformance/suite/test_positional_encoding.py"])
def test_a_clause_that_changed_is_met_by_each_package(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if CI could pass a clause about every size without showing it to all right code."""
    monkeypatch.setenv(tiers.CHANGED, file)
    assert all("PE-SIZES" in met(name) for name in NAMES)


def test_a_package_that_changed_meets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tiers.CHANGED, "tests/right/llama/model.py")
    assert met("llama", RIGHT / "llama") == SIZED
    assert met("lla", RIGHT / "lla") < SIZED


class Case:
    """A test case as pytest collects it, as far as its turn is concerned."""

    def __init__(self, nodeid: str, *near: str, full: bool = True, left: bool = False) -> None:
        self.nodeid, self._marks = nodeid, [pytest.mark.full(near=near, left=left).mark] if full else []

    def iter_markers(self, _name: str) -> Iterator[pytest.Mark]:
        return iter(self._marks)


COSTS = Costs({"tests/test_a.py::test_dear": 3.0, "tests/test_a.py::test_cheap": 0.1}, {})


def alike(name: str, *near: str, full: bool = True, number: int = 10) -> list[Case]:
    return [Case(f"tests/test_a.py::{name}[{letter}]", *near, full=full) for letter in "abcdefghij"[:number]]


def waiting_in(turn: str, cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setenv(CASES, turn)
    return {case.nodeid for case in waiting(cases, COSTS)}


def test_each_case_has_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if some case never ran in CI, or one ran each time."""
    cases = alike("test_dear")
    ran = [case.nodeid for n in range(1, 6) for case in cases
           if case.nodeid not in waiting_in(f"{n}/5", cases, monkeypatch)]  # fmt: skip
    assert sorted(ran) == [case.nodeid for case in cases]


def test_nothing_waits_unless_ci_asks_for_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting(alike("test_dear"), COSTS) == set()
    assert waiting_in("all", alike("test_dear"), monkeypatch) == set()


def test_quick_cases_cheap_families_and_few_cases_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*alike("test_dear", full=False), *alike("test_cheap"), *alike("test_other", number=FEW - 1)]
    assert waiting_in("1/5", cases, monkeypatch) == set()


def test_the_fixed_sample_does_not_wait_because_it_became_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if the attacks that the quick tests tried ran in one commit of eight only."""
    sample = Case("tests/test_a.py::test_dear[sample]", left=True)
    found = [waiting_in(f"{turn}/8", [sample, *alike("test_dear")], monkeypatch) for turn in range(1, 9)]
    assert not any(sample.nodeid in names for names in found)
    all_left = [Case(f"tests/test_a.py::test_dear[{letter}]", left=True) for letter in "abcdefghij"]
    assert waiting_in("1/8", all_left, monkeypatch)


@pytest.mark.parametrize("file", ["tests/test_a.py", "spec/attention.md", "reference/folder/file.py"])
def test_what_a_change_concerns_does_not_wait(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if a changed clause could pass CI without a known mistake that names it."""
    cases = alike("test_dear", "spec/attention.md", "reference/folder")
    assert len(waiting_in("1/5", cases, monkeypatch)) == 8
    monkeypatch.setenv(tiers.CHANGED, file)
    assert waiting_in("1/5", cases, monkeypatch) == set()


def test_a_share_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.UsageError, match="CONFORM_CASES: 'third' is none"):
        waiting_in("third", alike("test_dear"), monkeypatch)
