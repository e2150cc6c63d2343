"""The code of a Jupyter notebook, cell by cell. Standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

__all__ = ["SUFFIX", "cells", "code_of"]

SUFFIX = ".ipynb"
_KEPT_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
"""Commands about a whole cell after which its code is Python all the same."""
_COMMAND = re.compile(r"^\s*(?:[%!?]|[\w.]+\?{1,2}\s*$|\w[\w, ]*=\s*[%!])")


def cells(content: bytes) -> Iterator[tuple[int, str]]:
    """Yield the number and the code of each cell of code, counted from 1 as they stand; commands are blank lines.

    Yields nothing if it is no notebook.
    """
    try:
        found = json.loads(content)["cells"]
        codes = [cell["source"] for cell in found if cell["cell_type"] == "code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    for number, source in enumerate(codes, 1):
        text = source if isinstance(source, str) else "".join(map(str, source))
        yield number, _plain(text)


def code_of(content: bytes) -> bytes:
    """Return the code of all cells as one source; nothing if it is no notebook."""
    return "\n\n".join(code for _, code in cells(content)).encode(errors="replace")


def _plain(text: str) -> str:
    """Return the code of a cell without commands of the notebook; nothing if it is in another language."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not first.startswith(_KEPT_MAGICS):
        return ""
    return "\n".join("" if _COMMAND.match(line) else line for line in lines)
