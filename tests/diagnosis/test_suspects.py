"""To find suspects, only the files of mistakes that are suspect are parsed."""

from __future__ import annotations

import pytest

from conformkit.conformance import defects as catalogue
from conformkit.conformance.defects import Defect, defect, defects
from conformkit.conformance.defects.kills import named
from conformkit.conformance.diagnosis.suspects import suspects
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.spec.clauses import select
from conformkit.spec.variants import CANONICAL

RED = {"SDPA-SCALE", "MHA-SCALE-DHEAD"}


def _results() -> list[Result]:
    return [Result(one, Verdict.FAIL if one.id in RED else Verdict.PASS) for one in select((), "core")]


def test_what_a_red_clause_does_not_suspect_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if each failing run parsed all known mistakes, which took longer than to try the first of them."""
    parsed: list[str] = []

    def read(stem: str, file: object) -> Defect:
        parsed.append(str(file))
        return original(stem, file)  # type: ignore[arg-type]

    original = catalogue._read
    monkeypatch.setattr(catalogue, "_read", read)
    defect.cache_clear()
    results = _results()
    found = list(suspects([one for one in results if one.verdict.red], results, CANONICAL))
    assert {"sdpa-no-scale"} <= {one.defect.id for one in found}
    assert 0 < len(parsed) == len(set(parsed)) < len(named()) / 20


def test_what_a_mistake_names_is_known_without_parsing_its_file() -> None:
    """Would break if a list over several lines were overlooked, and the mistake no longer suspected."""
    assert named() == {name: one.clauses for name, one in defects().items()}


@pytest.mark.parametrize("name", ["../kit", "no-such-mistake", ""])
def test_there_is_no_mistake_of_another_name(name: str) -> None:
    assert defect(name) is None
