"""The guide as a web site, and the tutorial in it: links lead to pages, and cells print what is shown."""

from __future__ import annotations

import json
import posixpath
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from conformkit.conformance.apps.handbook.documents import sources

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.filterwarnings("ignore:.*myst_parser")


def script(name):
    spec = spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def website():
    return script("website")


@pytest.fixture(scope="module")
def pages(website):
    return website.pages()


@pytest.fixture
def tutorial():
    return script("tutorial")


def links(text):
    prose = "".join(re.split(r"^```.*?^```$", text, flags=re.MULTILINE | re.DOTALL))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"[a-z]+:|#", target)]


def test_each_page_of_the_guide_is_reached_from_the_first_one(website, pages):
    """Would break if a new file in docs/ stood in no list of the site."""
    listed = {name.rpartition("<")[2].rstrip(">") for names in website.USERS.values() for name in names}
    assert listed <= set(pages)
    files = {f"guide/{file.stem}" for file in (ROOT / "docs").glob("*.md")}
    assert files <= listed
    assert all(name in pages["index"] for name in listed)


def test_each_link_between_pages_leads_to_one(pages):
    for page, text in pages.items():
        for target in links(text):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page), target.partition("#")[0]))
            picture = place.endswith(".svg") and (ROOT / place).is_file()
            assert place.removesuffix(".md") in pages or picture, (page, target)


def test_files_that_are_no_page_are_linked_where_the_repository_is_known(website, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    text = "See [the attacks](../tests/attacks/README.md) and [security](security.md#limits)."
    assert (
        website._moved(text, "docs/x.md", "guide/x") == "See the attacks and [security](../guide/security.md#limits)."
    )
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/kit")
    monkeypatch.setenv("GITHUB_SHA", "abc")
    assert "(https://github.com/somebody/kit/blob/abc/tests/attacks/README.md)" in website._moved(
        text, "docs/x.md", "x"
    )


def test_workflows_to_copy_name_the_repository_that_the_site_is_built_from(website, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/kit")
    monkeypatch.setenv("GITHUB_SHA", "f" * 40)
    told = website._own_name((ROOT / "examples" / "ci" / "own.yml").read_text(encoding="utf-8"))
    assert f"uses: somebody/kit@{'f' * 40}" in told
    assert "your-organization" not in told


def test_the_reference_has_every_command_option_and_field(pages):
    assert "## conform grade" in pages["reference/commands"]
    assert "`--only` `PREFIX`" in pages["reference/commands"]
    assert "`parts.path`" in pages["reference/json"]
    assert "[[groups]]" in pages["reference/policy"]


def test_the_tutorial_is_a_notebook_whose_cells_are_python(tutorial):
    notebook = json.loads(tutorial.NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), cell["id"], "exec")
    assert any("FAIL MHA-SHAPE" in text for text in tutorial.printed(notebook))


def test_cells_share_their_names_and_keep_what_they_print(tutorial):
    cells = [{"cell_type": "code", "source": [text]} for text in ("x = 3", "print(x)  ")]
    done = tutorial.executed({"cells": cells})
    assert tutorial.printed(done) == ["", "3\n"]


@pytest.mark.full(guard="test_the_tutorial_is_a_notebook_whose_cells_are_python")
def test_the_tutorial_prints_what_it_shows(tutorial):
    assert tutorial.main(["--check"]) == 0


@pytest.mark.full(guard="test_each_link_between_pages_leads_to_one")
def test_the_site_is_built_without_a_dead_link(website, tmp_path):
    assert website.main([str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "guide" / "tutorial.html").is_file()
    assert 'href="../guide/report.html"' in (tmp_path / "site" / "law" / "attention.html").read_text(encoding="utf-8")


def test_a_document_of_the_law_is_linked_to_its_page(website):
    """It was named in the guide and led nowhere."""
    made = website._moved("[`spec/masks.md`](../spec/masks.md)", "docs/features.md", "guide/features")
    assert made == "[`spec/masks.md`](../law/masks.md)"
    assert set(website._law().values()) - {"law/errata", "law/sources"} <= set(sources())
