"""`python -m tests.reaching [--add] FILE…` makes `reached.json` of what `pytest -n0 --record FILE` wrote.

For each file of the kit it lists a few tests, the most telling first: each next one runs most of the functions there
that none before it runs, for the least time. A function counts in whatever process it runs.
With `--add`, files that are listed stay as they are: a few tests are enough to record new files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from .concerns import REACHED, reached
from .costs import family

__all__ = ["telling", "write"]

MOST = 25
"""Tests for one file."""
_START = 0.05
"""Seconds that any test takes."""


def telling(reached: Mapping[str, frozenset[str]], seconds: Mapping[str, float], most: int = MOST) -> list[str]:
    """Return the names of tests in the order in which they are worth running, given what each runs of a file."""
    order: list[str] = []
    missing = frozenset[str]().union(*reached.values())
    left = dict(reached)
    while left and len(order) < most:
        worth = {name: len(ran & missing) / (_START + seconds[name]) for name, ran in left.items()}
        best = max(sorted(worth), key=lambda name: worth[name])
        if not worth[best]:  # each function is run by a test: the next round of the same
            missing = frozenset[str]().union(*left.values())
            if not missing:
                break
            continue
        order.append(best)
        missing -= left.pop(best)
    return order


def write(files: Iterable[Path], *, add: bool = False) -> tuple[int, int]:
    """Write what the recordings tell. Returns the number of tests and of files that they run."""
    ran: dict[str, dict[str, set[str]]] = {}
    seconds: dict[str, float] = {}
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        test = json.loads(line)
        name = family(test["test"])
        seconds[name] = min(test["seconds"], seconds.get(name, test["seconds"]))
        for place in filter(_counts, test["ran"]):
            ran.setdefault(place.partition("::")[0], {}).setdefault(name, set()).add(place)
    chosen = {
        file: telling({name: frozenset(of) for name, of in tests.items()}, seconds) for file, tests in ran.items()
    }
    chosen |= reached() if add else {}
    names = sorted({name for of in chosen.values() for name in of})
    numbers = {name: number for number, name in enumerate(names)}
    rows = ",\n".join(f" {json.dumps(file)}: {[numbers[name] for name in of]}" for file, of in sorted(chosen.items()))
    REACHED.write_text(f'{{"tests": {json.dumps(names, indent=0)},\n"files": {{\n{rows}}}}}\n', encoding="utf-8")
    return len(seconds), len(chosen)


def _counts(place: str) -> bool:
    """Whether running it tells anything: the known mistakes are read all at once."""
    return not place.startswith("conformance/defects/") or "::" in place


if __name__ == "__main__":
    tests, files = write((Path(name) for name in sys.argv[1:] if name != "--add"), add="--add" in sys.argv)
    sys.stdout.write(f"{tests} tests run {files} files of the kit\n")
