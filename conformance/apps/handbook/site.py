"""HTML pages from the sources of a handbook, made by Sphinx: links, index and search work without a network."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from conformkit.conformance.apps.handbook.documents import sources
from conformkit.spec.clauses import SPEC_VERSION

__all__ = ["BuildError", "build"]

_SETTINGS = {
    "project": "conformkit", "version": SPEC_VERSION, "release": SPEC_VERSION, "language": "en",
    "extensions": ["myst_parser"], "myst_enable_extensions": ["fieldlist"],
    "myst_disable_syntax": ["html_inline", "html_block"],
    "html_theme": "furo", "html_copy_source": False, "html_show_sphinx": False, "html_show_copyright": False,
    "html_title": f"The law of small transformers {SPEC_VERSION}", "highlight_language": "none",
    "html_use_index": False,
}  # fmt: skip


class BuildError(ValueError):
    """The pages could not be built; the text says why."""


def build(folder: Path) -> int:
    """Write the pages into a new folder, all or none; return how many. Raises BuildError, OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".conform-", dir=folder.parent) as scratch:
        texts, out = Path(scratch) / "sources", Path(scratch) / "pages"
        for name, text in sources().items():
            (texts / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
            (texts / f"{name}.md").write_text(text, encoding="utf-8")
        _run(texts, out, Path(scratch) / "trees")
        shutil.rmtree(out / ".doctrees", ignore_errors=True)
        (out / ".buildinfo").unlink(missing_ok=True)
        out.rename(folder)
    return sum(1 for _ in folder.rglob("*.html"))


def _run(texts: Path, out: Path, trees: Path) -> None:
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        made = Sphinx(
            srcdir=texts, confdir=None, outdir=out, doctreedir=trees, buildername="html", confoverrides=_SETTINGS,
            status=None, warning=warnings, freshenv=True, keep_going=True,
        )  # fmt: skip
        made.build()
    if warnings.getvalue():  # mostly dead links
        raise BuildError(warnings.getvalue().strip())
