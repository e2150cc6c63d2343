"""Where in the user's own files a result belongs, for formats that need a file and a line."""

from __future__ import annotations

import re
from pathlib import Path

from conformkit.conformance.engine.results import Report, Result

__all__ = ["place"]

_WHERE = re.compile(r"(?P<file>[^:\n]+\.py):(?P<line>[1-9]\d{0,6})(?: in .*)?")


def place(report: Report, result: Result, root: Path) -> tuple[str, int] | None:
    """Return the file, relative to `root` with forward slashes, and the line that a result names.

    None if it names none, or one outside `root`.
    """
    match = _WHERE.fullmatch(result.where)
    if match is None or not report.location:
        return None
    home = Path(report.location)
    for base in (home.parent, home):  # by the package's name, or by the folder's
        file = (base / match["file"]).resolve()
        if file.is_file() and file.is_relative_to(root.resolve()):
            return file.relative_to(root.resolve()).as_posix(), int(match["line"])
    return None
