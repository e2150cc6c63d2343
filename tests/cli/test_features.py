"""docs/features.md names every feature of the sources once, and only files and names that exist."""

import re
from pathlib import Path

from conformkit.spec.clauses import clauses

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in PAGE.splitlines() if line.startswith("| F")]
KINDS = {"works", "in part", "variant", "not here"}
FILE = re.compile(r"`((?:\w[\w.-]*/)+[\w.-]+)(?::(\w+))?`")


def test_every_feature_has_one_line():
    assert [row[0] for row in ROWS] == [f"F{number}" for number in range(1, 112)]
    assert {row[2] for row in ROWS} <= KINDS
    assert all(len(row) == 4 and row[3] for row in ROWS)


def test_what_works_names_a_file_and_every_named_file_and_name_exists():
    named = {row[0]: FILE.findall(row[3]) for row in ROWS}
    gone = [(number, path) for number, found in named.items() for path, _ in found if not (ROOT / path).exists()]
    assert gone == []
    without = [
        (number, path, name) for number, found in named.items() for path, name in found
        if name and not re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]  # fmt: skip
    assert without == []
    assert [row[0] for row in ROWS if row[2] == "works" and not named[row[0]]] == []


def test_every_clause_that_the_page_names_is_in_the_law_or_left_out_of_it():
    """Would break if a clause had another name here than in spec/, as TOK-…-ROUNDTRIP had for TOK-ROUNDTRIP."""
    left_out = (ROOT / "docs" / "left-out.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w…-])[A-Z0-9]{2,}(?:-[A-Z0-9]+)+(?![\w…-])", PAGE))
    assert len(named) > 5
    assert {name for name in named if name not in clauses() and f"`{name}`" not in left_out} == set()
    for head in re.findall(r"\b([A-Z]{2,}) clauses", PAGE):
        assert any(name.startswith(f"{head}-") for name in clauses()), head
    for tail in re.findall(r"…(-[A-Z-]+)", PAGE):
        assert any(name.endswith(tail) for name in clauses()), tail
    assert not re.search(r"[A-Z]-…", PAGE)  # a name with its middle left out names nothing that can be looked up


def test_the_counts_at_the_top_are_those_of_the_lines():
    counts = {kind: sum(row[2] == kind for row in ROWS) for kind in KINDS}
    said = re.search(r"(\d+) work, (\d+) in part, (\d+) are not here, (\d+) is judged", PAGE)
    assert said is not None
    assert [int(number) for number in said.groups()] == [
        counts["works"], counts["in part"], counts["not here"], counts["variant"],
    ]  # fmt: skip
