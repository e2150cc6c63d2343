"""HTML pages from the sources of a handbook, made by Sphinx: links, index and search work without a network."""

from __future__ import annotations

import gc
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.util.docutils import docutils_namespace, patch_docutils

from conformkit.conformance.apps.handbook.documents import sources
from conformkit.spec.clauses import SPEC_VERSION

__all__ = ["BuildError", "build"]

_SETTINGS = {
    "project": "conformkit", "version": SPEC_VERSION, "release": SPEC_VERSION, "language": "en",
    "extensions": ["myst_parser"], "myst_enable_extensions": ["fieldlist"],
    "myst_disable_syntax": ["html_inline", "html_block"],
    "myst_ref_domains": ["std"],  # or each link is tried as a name of C++
    "myst_heading_anchors": 4, "smartquotes": False,
    "html_theme": "furo", "html_copy_source": False, "html_show_sphinx": False, "html_show_copyright": False,
    "html_title": f"The law of small transformers {SPEC_VERSION}", "highlight_language": "none",
    "html_use_index": False,
    "html_theme_options": {  # whoever uses the keyboard sees that the search has the focus
        "light_css_variables": {"color-sidebar-search-background--focus": "#cfe2ff"},
        "dark_css_variables": {"color-sidebar-search-background--focus": "#1c3f6e"},
    },
}  # fmt: skip


_CURRENT = re.compile(r"\bcurrent (?=[^<]*>)| ?\bcurrent\b(?=[^<]*>)")


class BuildError(ValueError):
    """The pages could not be built; the text says why."""


def build(
    folder: Path, texts: Mapping[str, str] | None = None, on_page: Callable[[int, int], None] | None = None,
    settings: Mapping[str, Any] | None = None, pictures: Mapping[str, Path] | None = None,
) -> int:  # fmt: skip
    """Write pages into a new folder, all or none; return how many. Raises BuildError, OSError.

    `texts` are the pages' sources by path, by default those of the law; `on_page` is told how many are read or written,
    out of how many; `settings` are added to those of Sphinx; `pictures` are files that the pages show, by path.
    """
    pages = sources() if texts is None else texts
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".conform-", dir=folder.parent) as scratch:
        written, out = Path(scratch) / "sources", Path(scratch) / "pages"
        for name, text in pages.items():
            (written / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
            (written / f"{name}.md").write_text(text, encoding="utf-8")
        for name, file in (pictures or {}).items():
            (written / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, written / name)
        _run(written, out, Path(scratch) / "trees", _Steps(2 * len(pages), on_page), settings or {})
        shutil.rmtree(out / ".doctrees", ignore_errors=True)
        (out / ".buildinfo").unlink(missing_ok=True)
        out.rename(folder)
    return sum(1 for _ in folder.rglob("*.html"))


class _Steps:
    """Counts the pages that are read and written, in this process and in those that Sphinx forks."""

    def __init__(self, total: int, told: Callable[[int, int], None] | None) -> None:
        self._done, self._total, self._told = 0, total, told
        self._process = os.getpid()

    def one(self, *_: object) -> None:
        """Note that one more is read or written here."""
        self._add(1)

    def several(self, _app: Sphinx, _env: object, pages: Sequence[str], _other: object) -> None:
        """Note that another process has read some."""
        self._add(len(pages))

    def _add(self, number: int) -> None:
        self._done += number
        if self._told is not None and os.getpid() == self._process:
            self._told(min(self._done, self._total), self._total)


class _Words(SearchEnglish):
    """The words of the search, each stemmed once: the pages use the same ones a hundred times."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._stems: dict[str, str] = {}

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        if word not in self._stems:
            self._stems[word] = super().stem(word)
        return self._stems[word]


class _Contents:
    """The table of contents beside each page: made once for each folder, since Sphinx and the theme take long for it.

    Both make one for no page in particular; which entry is the page's own is written into it afterwards.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def use(self, _app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
        """Replace the function that makes it; for before the theme reads it."""
        make = context["toctree"]
        context["toctree"] = lambda **options: self._of_folder(page, lambda: str(make(**options)))

    def mark(self, _app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
        """Mark the page's own entry; for after the theme has read it."""
        link = f'><a class="reference internal" href="{page.rpartition("/")[2]}.html">'
        own, other = (f'<li class="toctree-l1{mark}"{link}' for mark in (" current current-page", ""))
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(other, own, 1)

    def _of_folder(self, page: str, make: Callable[[], str]) -> str:
        folder, _, own = page.rpartition("/")
        if folder not in self._known:
            plain = _CURRENT.sub("", make()).replace(' class=""', "")
            self._known[folder] = plain.replace('href="#"', f'href="{own}.html"')
        return self._known[folder]


def _use_one_formatter(app: Sphinx) -> None:
    """Let all blocks of code share one formatter: each makes the same style sheet, in longer than it colors a block."""
    builder: Any = app.builder  # one that writes HTML
    make = builder.highlighter.get_formatter
    known: dict[str, Any] = {}

    def formatter(**options: Any) -> Any:
        name = repr(sorted(options.items()))
        if name not in known:
            known[name] = make(**options)
        return known[name]

    builder.highlighter.get_formatter = formatter


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for garbage seldom: pages are trees of millions of nodes, which Python would walk again and again."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _run(texts: Path, out: Path, trees: Path, steps: _Steps, settings: Mapping[str, Any]) -> None:
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace(), _seldom_collected():
        made = Sphinx(
            srcdir=texts, confdir=None, outdir=out, doctreedir=trees, buildername="html",
            confoverrides={**_SETTINGS, **settings}, status=None, warning=warnings, freshenv=True, keep_going=True,
            parallel=min(4, os.cpu_count() or 1),
        )  # fmt: skip
        made.add_search_language(_Words)
        made.connect("doctree-read", steps.one)
        made.connect("env-merge-info", steps.several)
        made.connect("doctree-resolved", steps.one)  # which is done here, shortly before it is written
        contents = _Contents()
        made.connect("html-page-context", contents.use, priority=100)
        made.connect("html-page-context", contents.mark, priority=900)
        _use_one_formatter(made)
        with catch_warnings():  # the thread of a progress bar is no danger: what Sphinx forks does not print
            filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            made.build()
    if warnings.getvalue():  # mostly dead links
        raise BuildError(warnings.getvalue().strip())
