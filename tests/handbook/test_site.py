"""Every clause, known mistake and erratum has an anchor, every link leads somewhere, and no page needs a network."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from conformkit.conformance.apps.handbook import site
from conformkit.conformance.apps.handbook.markdown import document, mistake
from conformkit.conformance.defects import defects
from conformkit.conformance.report.wording import address
from conformkit.spec.clauses import STEMS, clauses
from conformkit.spec.errata import errata

# what Sphinx and its parser for Markdown have to settle between them
pytestmark = pytest.mark.filterwarnings("ignore:.*myst_parser")


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag != "a" and (given.get("src") or given.get("rel") in ("stylesheet", "icon")):
            self.loads.append(str(given.get("src") or given.get("href")))


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, Page]:
    folder = tmp_path_factory.mktemp("handbook") / "pages"
    site.build(folder)
    return {file: Page(file) for file in folder.rglob("*.html")}


def anchors(pages: Mapping[Path, Page], name: str) -> set[str]:
    return next(page.anchors for file, page in pages.items() if file.as_posix().endswith(f"/pages/{name}.html"))


@pytest.mark.parametrize("stem", STEMS)
def test_each_document_has_its_clauses_and_its_mistakes(pages, stem):
    wanted = {clause.id.lower() for clause in clauses().values() if clause.document == stem}
    assert wanted | {document(stem)} <= anchors(pages, f"law/{stem}")
    known = {mistake(name) for name, found in defects().items() if found.stem == stem}
    assert not known or known <= anchors(pages, f"mistakes/{stem}")


def test_a_report_links_to_what_is_there(pages):
    wanted = {address(clause) for clause in clauses().values()}
    folder = next(file.parent for file in pages if file.name == "errata.html")
    there = {f"{file.relative_to(folder).as_posix()}#{name}" for file, page in pages.items() for name in page.anchors}
    assert wanted <= there


def test_each_erratum_has_an_anchor(pages):
    assert {name.lower() for name in errata()} <= anchors(pages, "errata")


def test_the_sources_of_a_clause_and_where_to_get_them_are_told(pages):
    law, listed = (
        next(f for f in pages if f.as_posix().endswith(name)) for name in ("law/attention.html", "sources.html")
    )
    assert "handout §4.2 (private; public: Vaswani et al. 2017, §3.2.1)" in law.read_text(encoding="utf-8")
    assert "https://arxiv.org/abs/1706.03762" in pages[listed].links


def test_no_link_is_dead(pages):
    dead = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file.resolve()
            known = pages.get(target)
            if parts.scheme == "https":  # the theme's author
                continue
            if known is None or (parts.fragment and unquote(parts.fragment) not in known.anchors):
                dead.append((file.name, link))
    assert not dead


def test_nothing_is_loaded_from_elsewhere(pages):
    loads = {(file, load) for file, page in pages.items() for load in page.loads}
    assert loads
    assert not {load for file, load in loads if not (file.parent / urlsplit(load).path).is_file()}


def test_a_link_that_leads_nowhere_is_an_error_and_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(site, "sources", lambda: {"index": "# Law\n\n[gone](#sdpa-gone)\n"})
    with pytest.raises(site.BuildError, match="sdpa-gone"):
        site.build(tmp_path / "pages")
    assert list(tmp_path.iterdir()) == []
