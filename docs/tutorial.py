"""Run the tutorial notebook and store what its cells print: `python docs/tutorial.py`; `--check` only compares."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOK", "executed", "printed"]

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a notebook in which each cell of code has run, in order, with what it printed as its output."""
    known: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code":
            cells.append({**cell, "id": f"cell-{number}"})
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), known)  # noqa: S102 - our own notebook
        lines = [f"{line.rstrip()}\n" for line in out.getvalue().splitlines()]
        outputs = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        cells.append({**cell, "id": f"cell-{number}", "execution_count": None, "outputs": outputs})
    return {**notebook, "cells": cells}


def printed(notebook: dict[str, Any]) -> list[str]:
    """Return what the cells of a notebook printed."""
    return ["".join(text for out in cell.get("outputs", ()) for text in out["text"]) for cell in notebook["cells"]]


def main(arguments: list[str]) -> int:
    """Write the notebook with its outputs, or with --check say whether they are those that are stored."""
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    now = executed(stored)
    if arguments == ["--check"]:
        if printed(now) != printed(stored):
            print("docs/tutorial.ipynb shows outdated output: run python docs/tutorial.py", file=sys.stderr)
            return 1
        return 0
    NOTEBOOK.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
