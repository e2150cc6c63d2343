"""Which clauses about every size right code meets: a third each time, all in three times, and what changed anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.spec.clauses import clauses_of

from . import tiers
from .shares import SHARES, left_out, share

RIGHT = Path(__file__).resolve().parent / "right"
SIZED = {name for name, clause in clauses_of("core").items() if clause.sizes}
NAMES = ["llama", "gemma", "head_loop", "torch_layers", "annotated"]
"""Of each remainder, some."""


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFORM_SIZES", "CONFORM_SEED", tiers.CHANGED):
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
