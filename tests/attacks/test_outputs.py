"""Texts of attacks appear in every output of grading as plain text: no page, table or log executes them."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformkit.conformance.apps.grade.grade import GradeRequest, grade

from .attack import attacks
from .judging import HIDDEN, WORKFLOW_COMMAND
from .sandboxes import sandbox
from .test_grading import POLICY, hand_in
from .world import World, guarded

pytestmark = sandbox
SHOWN = replace(POLICY, seed=0, hints=3)
"""With public draws, messages are shown in full."""


QUICK = {"formulas", "html", "markdown"}


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.full)])
def out(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grade attacks on readers, one of them in a folder whose name is a formula."""
    place = tmp_path_factory.mktemp("graded") / "out"
    with world.class_room() as room, guarded(600):
        for attack in (a for a in attacks("text") if request.param == "all" or a.folder.name in QUICK):
            name = attack.name if attack.name != "submission" else attack.folder.name
            hand_in(attack, room / "submissions", name)
        grade(GradeRequest(room / "submissions", SHOWN, place, workers=2))
    return place


def texts(out: Path, *endings: str) -> dict[str, str]:
    """Return the outputs with one of these endings."""
    files = (path for path in out.rglob("*") if path.is_file() and path.suffix in endings)
    found = {str(path.relative_to(out)): path.read_text(encoding="utf-8") for path in files}
    assert found
    return found


def test_no_output_holds_what_a_reader_cannot_see(out: Path) -> None:
    for name, text in texts(out, ".csv", ".html", ".json", ".log", ".md", ".xml").items():
        strange = {c for c in text if unicodedata.category(c) in HIDDEN and c not in "\n\r\t"}
        assert not strange, name


def test_no_cell_of_the_table_is_a_formula(out: Path) -> None:
    rows = list(csv.reader((out / "grades.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert any("HYPERLINK" in cell for row in rows for cell in row), "the attack did not reach the table"
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in {"=", "+", "-", "@"} or "\t" in cell]


class _Page(HTMLParser):
    """Counts the elements of a page, and keeps those attributes that could do something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.doing: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        for name, value in ((name, value or "") for name, value in attrs):
            if name.startswith("on") or value.lower().startswith(("http", "//", "javascript:", "data:text")):
                self.doing.append((name, value))


def test_no_page_has_elements_or_handlers_of_an_attack(out: Path) -> None:
    pages = texts(out, ".html")
    assert any("&lt;script&gt;" in text for text in pages.values()), "the attack did not reach a page"
    usual = _Page(pages["students/honest/report.html"]).elements
    for name, text in pages.items():
        page = _Page(text)
        assert not page.doing, name
        for element in ("script", "iframe", "object", "embed", "form", "base", "link", "meta", "img"):
            assert page.elements[element] <= usual[element] or name == "overview.html", (name, element)


def test_markdown_shows_what_an_attack_says_as_it_is(out: Path) -> None:
    pages = texts(out, ".md")
    assert any("@everyone" in text for text in pages.values()), "the attack did not reach a page"
    for name, text in pages.items():
        outside = "".join(outside_of_fences(text))
        assert not [
            word for word in ("<script", "<img", "<svg", "![", "@everyone", "javascript:") if word in outside
        ], name


_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
"""Code within a line: between two runs of equally many backticks."""


def outside_of_fences(text: str) -> Iterator[str]:
    """Yield the lines that Markdown reads as Markdown: outside of fences, without code within lines."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(mark) >= 3:
            fence = mark
        elif fence and line.strip() == fence:
            fence = ""
        elif not fence:
            yield _SPAN.sub("", line)


def test_machines_can_read_what_is_for_them(out: Path) -> None:
    for text in texts(out, ".json").values():
        json.loads(text)
    for text in texts(out, ".xml").values():
        assert not {element.tag for element in ET.fromstring(text).iter()} - ELEMENTS
    for name, text in texts(out, ".log").items():
        assert not WORKFLOW_COMMAND.search(text), name


def test_nothing_for_a_learning_platform_is_taken_for_a_page(out: Path) -> None:
    for path in out.rglob("results.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        forms = {found.get("output_format", "text"), found.get("test_output_format", "text")}
        forms |= {test.get("output_format", "text") for test in found["tests"]}
        assert forms <= {"text"}, path


ELEMENTS = {
    "testsuites",
    "testsuite",
    "testcase",
    "properties",
    "property",
    "failure",
    "error",
    "skipped",
    "system-out",
}
