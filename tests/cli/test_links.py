"""Every relative link of the pages leads to an existing file, and to one of its headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("tests/*/README.md"), ROOT / "spec" / "sources.md"]
)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^()\s]+)\)")


def prose(path):
    """The text without blocks and pieces of code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`(?![^\[\]\n]*\])", "", text)


def anchors(path):
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead(path):
    for link in LINK.findall(prose(path)):
        target, _, anchor = link.partition("#")
        if target.startswith(("https:", "http:")):
            continue
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_of_a_page_is_dead(path):
    assert list(dead(path)) == []


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "there.md").write_text("# A heading: `x`, with signs\n", encoding="utf-8")
    page = tmp_path / "page.md"
    links = ["there.md", "there.md#a-heading-x-with-signs", "gone.md", "there.md#gone", "#gone", "https://example.org"]
    page.write_text("\n".join(f"[a `b` c]({link})" for link in links) + "\n`[x](code.md)`\n", encoding="utf-8")
    assert list(dead(page)) == ["gone.md", "there.md#gone", "#gone"]
