"""Write docs/quality.md from figures.toml and from unseen/sets.tsv: `python benchmarks/quality.py`.

Whoever measures a figure again changes it in figures.toml; a set that was judged gets a line in sets.tsv.
"""

from __future__ import annotations

import csv
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "quality.md"
ABOUT = """# Figures

Every figure that this project gives of itself, and the command that measures it again, in the root of the
repository, in an environment with the extra `test`; `benchmarks/peers` needs the extra `benchmarks`, too.
Ratios are measured side by side in one run: `import torch` is `python -c "import torch"`. "With each test
run" means that tests count it again, and fail where the figure is no longer right. This page is written by
`python benchmarks/quality.py` from [figures.toml](../benchmarks/figures.toml).
"""
UNSEEN = """## Sets that nobody here had seen

Written from the README, the guides and the stubs alone, and judged before anything was changed for them
([how](../benchmarks/unseen/README.md), [each set](../benchmarks/unseen/sets.tsv)). Of wrong code a case is one that
breaks a binding clause, of hostile code one that hides no mistake behind a pass, of right code one that conforms. First
names are those of caught mistakes, as a person read them: right, near, wrong, none.
"""
ROW = tuple[str, ...]


def page() -> str:
    """Return the page."""
    figures = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))["figure"]
    keys = ("what", "found", "wanted", "measured", "again")
    heading = ("what", "figure", "wanted", "measured", "again with")
    rows = [tuple(figure.get(key, "") for key in keys) for figure in figures]
    return "\n".join((ABOUT, *_table(heading, rows), "", UNSEEN, *_table(*_sets())))


def _sets() -> tuple[ROW, list[ROW]]:
    """Return the table of sets: of each kind all of them, and the last one alone."""
    kinds: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    with (HERE / "unseen" / "sets.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            kinds[row["kind"]].append(row)
    rows = []
    for kind, sets in sorted(kinds.items()):
        ordered = sorted(sets, key=lambda one: one["measured"])
        rows.append((kind, str(len(sets)), _share(sets), _share(ordered[-1:]), _names(sets), ordered[-1]["measured"]))
    return ("what", "sets", "at first, all", "at first, the last set", "first names", "last"), rows


def _share(sets: Sequence[Mapping[str, str]]) -> str:
    return f"{sum(int(one['first']) for one in sets)} of {sum(int(one['of']) for one in sets)}"


def _names(sets: Sequence[Mapping[str, str]]) -> str:
    read = [one for one in sets if one["none"]]
    counted = (sum(int(one[name]) for one in read) for name in ("right", "near", "wrong", "none"))
    return ", ".join(map(str, counted)) if read else ""


def _table(heading: ROW, rows: Sequence[ROW]) -> Iterator[str]:
    yield from (f"| {' | '.join(row)} |" for row in (heading, ("---",) * len(heading), *rows))


if __name__ == "__main__":
    PAGE.write_text(page() + "\n", encoding="utf-8")
