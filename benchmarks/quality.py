"""Write docs/quality.md from figures.toml and from unseen/sets.tsv: `python benchmarks/quality.py`.

Whoever measures a figure again changes it in figures.toml; a set that was judged gets a line in sets.tsv.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "quality.md"
ABOUT = """# Figures

How good the suite is, and the command that measures each figure again, in the root of the repository, in an
environment with the extra `test` (`benchmarks/peers`: `benchmarks`, too). Ratios are measured side by side in one run;
`import torch` is `python -c "import torch"`. When and on what each was measured, what was wanted, and the
figures that are not here stand in [figures.toml](../benchmarks/figures.toml).

An *unseen* set is by somebody who had seen neither the law nor the code of the kit, and is judged before anything is
changed for it ([how](../benchmarks/unseen/README.md), [each set](../benchmarks/unseen/sets.tsv)): wrong code is caught
by a binding clause, right code conforms, hostile code hides no mistake behind a pass. Names are as a person read them.
This page is written by `python benchmarks/quality.py`.
"""
UNSEEN = "`python benchmarks/unseen mistakes FOLDER`"
Sets = Sequence[Mapping[str, str]]


def figures() -> list[dict[str, str]]:
    """Return every figure: what it is of, what was found, the command, and what else is known of it."""
    read: list[dict[str, str]] = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))["figure"]
    return read


def page() -> str:
    """Return the page."""
    shown = [(one["what"], _found(one), one["again"]) for one in figures() if one.get("page")]
    rows = [("what", "figure", "command"), ("---",) * 3, *shown, *_unseen()]
    return "\n".join((ABOUT, *(f"| {' | '.join(row)} |" for row in rows)))


def _found(figure: Mapping[str, str]) -> str:
    wanted = figure.get("wanted")
    return f"{figure['found']} (wanted: {wanted})" if wanted else figure["found"]


def _unseen() -> Iterator[tuple[str, str, str]]:
    """Yield what the sets that nobody here had seen came to, of each kind all of them together."""
    with (HERE / "unseen" / "sets.tsv").open(encoding="utf-8", newline="") as file:
        sets = list(csv.DictReader(file, delimiter="\t"))
    right = [one for one in sets if one["kind"].startswith("right")]
    hostile = [one for one in sets if one["kind"].startswith("hostile")]
    wrong = [one for one in sets if one not in right and one not in hostile]
    yield "unseen wrong code, and what was caught at first", _caught(wrong), UNSEEN
    yield "first names of it: right, near, wrong, none", _names(wrong), UNSEEN
    yield "unseen right code, and what conformed at first", _caught(right), UNSEEN.replace("mistakes", "right")
    yield "unseen hostile packages, and what was refused at first", _caught(hostile), "`python benchmarks/hostile.py`"


def _caught(sets: Sets) -> str:
    return f"{sum(int(one['first']) for one in sets)} of {sum(int(one['of']) for one in sets)}, in {len(sets)} sets"


def _names(sets: Sets) -> str:
    read = [one for one in sets if one["none"]]
    return ", ".join(str(sum(int(one[name]) for one in read)) for name in ("right", "near", "wrong", "none"))


if __name__ == "__main__":
    PAGE.write_text(page() + "\n", encoding="utf-8")
