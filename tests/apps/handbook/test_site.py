"""Every clause, known mistake and erratum has an anchor, every link leads somewhere, and no page needs a network."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from conformkit.conformance.apps.handbook import documents, site
from conformkit.conformance.apps.handbook.markdown import document, mistake
from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.report.wording import address
from conformkit.spec.clauses import Clause, clauses
from conformkit.spec.errata import Erratum, errata
from conformkit.spec.profiles import PROFILES

# a matter between Sphinx and its Markdown parser
pytestmark = pytest.mark.filterwarnings("ignore:.*myst_parser")


class Page(HTMLParser):
    """The anchors of a page, its links and what it loads."""

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


@dataclass(frozen=True)
class Handbook:
    """Built pages, and their subjects."""

    pages: Mapping[Path, Page]
    law: Mapping[str, Clause]
    mistakes: Mapping[str, Defect]
    points: Mapping[str, Erratum]

    def anchors(self, name: str) -> set[str]:
        return next(
            page.anchors for file, page in self.pages.items() if file.as_posix().endswith(f"/pages/{name}.html")
        )


def built(folder: Path, **parts: Mapping) -> Handbook:
    site.build(folder / "pages")
    return Handbook({file: Page(file) for file in folder.rglob("*.html")}, **parts)


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> Handbook:
    """Pages of two documents, without links to others."""
    stems = ("attention", "schedules")
    law = {name: clause for name, clause in clauses().items() if clause.document in stems}
    law = {name: replace(clause, needs=tuple(n for n in clause.needs if n in law)) for name, clause in law.items()}
    mistakes = {
        name: known for name, known in defects().items() if known.stem in stems and set(known.clauses) <= set(law)
    }
    points = {name: point for name, point in errata().items() if point.clauses and set(point.clauses) <= set(law)}
    with pytest.MonkeyPatch.context() as changed:
        documents._mistakes.cache_clear()
        changed.setattr(documents, "clauses", lambda: law)
        changed.setattr(documents, "defects", lambda: mistakes)
        changed.setattr(documents, "errata", lambda: points)
        changed.setattr(documents, "errata_of", lambda name: [p for p in points.values() if name in p.clauses])
        changed.setattr(documents, "STEMS", stems)
        profiles = {
            name: replace(profile, documents=tuple(stem for stem in profile.documents if stem in stems))
            for name, profile in PROFILES.items()
        }
        changed.setattr(documents, "PROFILES", profiles)
        found = built(tmp_path_factory.mktemp("handbook"), law=law, mistakes=mistakes, points=points)
    documents._mistakes.cache_clear()
    return found


def test_each_document_has_its_clauses_and_its_mistakes(extract):
    for stem in {clause.document for clause in extract.law.values()}:
        wanted = {clause.id.lower() for clause in extract.law.values() if clause.document == stem}
        assert wanted | {document(stem)} <= extract.anchors(f"law/{stem}")
        known = {mistake(name) for name, found in extract.mistakes.items() if found.stem == stem}
        assert not known or known <= extract.anchors(f"mistakes/{stem}")


def test_a_report_links_to_what_is_there(extract):
    wanted = {address(clause) for clause in extract.law.values()}
    folder = next(file.parent for file in extract.pages if file.name == "errata.html")
    there = {
        f"{file.relative_to(folder).as_posix()}#{name}" for file, page in extract.pages.items() for name in page.anchors
    }
    assert wanted <= there


def test_each_erratum_has_an_anchor(extract):
    assert {name.lower() for name in extract.points} <= extract.anchors("errata")


def test_the_sources_of_a_clause_and_where_to_get_them_are_shown(extract):
    law, listed = (
        next(file for file in extract.pages if file.as_posix().endswith(name))
        for name in ("law/attention.html", "sources.html")
    )
    assert "Vaswani et al. 2017, §3.2.1" in law.read_text(encoding="utf-8")
    assert "https://arxiv.org/abs/1706.03762" in extract.pages[listed].links


def test_no_link_is_dead(extract):
    dead = []
    for file, page in extract.pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file.resolve()
            known = extract.pages.get(target)
            if parts.scheme == "https":  # the theme's author
                continue
            if known is None or (parts.fragment and unquote(parts.fragment) not in known.anchors):
                dead.append((file.name, link))
    assert not dead


def test_nothing_is_loaded_from_elsewhere(extract):
    loads = {(file, load) for file, page in extract.pages.items() for load in page.loads}
    assert loads
    assert not {load for file, load in loads if not (file.parent / urlsplit(load).path).is_file()}


OF_PAGES = [
    test_each_document_has_its_clauses_and_its_mistakes, test_a_report_links_to_what_is_there,
    test_each_erratum_has_an_anchor, test_the_sources_of_a_clause_and_where_to_get_them_are_shown,
    test_no_link_is_dead, test_nothing_is_loaded_from_elsewhere,
]  # fmt: skip


@pytest.mark.full(guard="test_no_link_is_dead")
def test_all_this_holds_of_the_whole_law(tmp_path):
    whole = built(tmp_path, law=clauses(), mistakes=defects(), points=errata())
    for holds in OF_PAGES:
        holds(whole)


def test_every_link_of_the_whole_law_has_its_anchor_before_any_page_is_built():
    text = "\n".join(documents.sources().values())
    anchors = set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))
    links = set(re.findall(r"\]\(#([\w-]+)\)", text))
    assert anchors >= {*map(str.lower, clauses()), *map(mistake, defects()), *map(str.lower, errata())}
    assert links - anchors == set()


def test_a_link_that_leads_nowhere_is_an_error_and_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(site, "sources", lambda: {"index": "# Law\n\n[gone](#sdpa-gone)\n"})
    with pytest.raises(site.BuildError, match="sdpa-gone"):
        site.build(tmp_path / "pages")
    assert list(tmp_path.iterdir()) == []


def test_garbage_is_looked_for_seldom_and_afterwards_as_before(tmp_path):
    """Would break if Python walked the trees of all pages again and again, or if a caller's settings were changed."""
    before, during = gc.get_threshold(), []
    site.build(tmp_path / "p", {"index": "# One\n"}, lambda *_: during.append(gc.get_threshold()))
    assert gc.get_threshold() == before
    assert min(during) > before
