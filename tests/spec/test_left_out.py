"""docs/left-out.md: what it says about clauses is true, and what it leaves out is not a clause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformkit.spec.clauses import Level, clauses

PAGE = Path(__file__).resolve().parents[2] / "docs" / "left-out.md"
ID = re.compile(r"\b[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)+\b")
LEVELS = {level.value for level in Level}


def sections() -> dict[str, list[list[str]]]:
    """Return the rows of the table under each heading, cell by cell, without the table's head."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = part.splitlines()
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
        found[title] = rows[2:]
    return found


def reserved() -> list[str]:
    """Return the ids of what is not a clause."""
    rows = sections()["Merged into other clauses"] + sections()["Left out"]
    return [row[0].strip("`") for row in rows]


@pytest.mark.parametrize("heading", ["Merged into other clauses", "Left out", "Relaxed requirements"])
def test_every_row_has_an_id_in_front_and_all_its_cells(heading: str) -> None:
    rows = sections()[heading]
    assert rows
    columns = 4 if heading.startswith("Relaxed") else 3
    assert [row[0] for row in rows if len(row) != columns or not ID.match(row[0].strip("`"))] == []


def test_a_reserved_id_is_not_a_clause_and_listed_once() -> None:
    assert set(reserved()) & set(clauses()) == set()
    assert len(set(reserved())) == len(reserved())


def test_all_other_ids_are_clauses() -> None:
    named = set(ID.findall(PAGE.read_text(encoding="utf-8")))
    assert named - set(clauses()) - set(reserved()) == set()


def test_what_is_merged_names_the_clauses_that_prove_it() -> None:
    rows = sections()["Merged into other clauses"]
    assert [row[0] for row in rows if not set(ID.findall(row[2])) & set(clauses())] == []


def test_the_levels_of_relaxed_clauses_are_those_of_the_law() -> None:
    for names, _, level, _ in sections()["Relaxed requirements"]:
        if level in LEVELS:
            assert {clauses()[name].level.value for name in ID.findall(names)} == {level}, names
