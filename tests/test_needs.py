"""No test skips in silence where everything must be there."""

from __future__ import annotations

import re

import pytest

from .needs import PARTS, needed, optional, without
from .tiers import ROOT


def test_ci_needs_every_part():
    """Would break if an optional part were new, and its tests skipped in CI."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert set(re.findall(r"CONFORM_NEEDS_(\w+)=1", text)) == PARTS


def test_optional_packages_are_imported_here_alone():
    """Would break if a test skipped for a package whatever CI says."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path.name != "test_needs.py"]
    assert [str(path) for path in files if "importorskip" in path.read_text(encoding="utf-8")] == []


def test_what_is_needed_and_missing_fails(monkeypatch):
    monkeypatch.setitem(optional.__globals__["MODULES"], "no_such_package", "PEERS")
    monkeypatch.setenv("CONFORM_NEEDS_PEERS", "1")
    with pytest.raises(ImportError):
        optional("no_such_package")
    monkeypatch.delenv("CONFORM_NEEDS_PEERS")
    with pytest.raises(pytest.skip.Exception):
        optional("no_such_package")


def test_a_reason_skips_only_where_the_part_is_not_needed(monkeypatch):
    monkeypatch.delenv("CONFORM_NEEDS_GHOST", raising=False)
    assert [without("GHOST", reason).args[0] for reason in ("", "too old")] == [False, True]
    monkeypatch.setenv("CONFORM_NEEDS_GHOST", "1")
    assert without("GHOST", "too old").args[0] is False


def test_a_part_that_nobody_knows_is_refused():
    with pytest.raises(AssertionError):
        needed("GHSOT")
