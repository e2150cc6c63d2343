"""Count the known mistakes, those that break a binding clause, and the failing clauses of each.

python benchmarks/defects.py

It reads what `conform defects --json` prints; `conform defects --measure` compares that with a new measurement.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONFORM = (sys.executable, "-P", "-m", "conformkit.cli")


@dataclass(frozen=True)
class Figures:
    """Known mistakes, those that break a MUST, and failing clauses of those of core: median and ninth decile."""

    known: int
    binding: int
    core: int
    median: int
    ninth_decile: int

    @property
    def percent(self) -> int:
        """Return how many of a hundred known mistakes break a MUST."""
        return round(100 * self.binding / self.known)


def record(*command: str) -> list[dict[str, Any]]:
    """Return what a command of conform prints as JSON."""
    done = subprocess.run([*CONFORM, *command, "--json"], stdout=subprocess.PIPE, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def figures(defects: Sequence[Mapping[str, Any]], clauses: Sequence[Mapping[str, Any]]) -> Figures:
    """Return the figures of the known mistakes and the clauses, as the commands print them."""
    must = {clause["id"] for clause in clauses if clause["level"] == "MUST"}
    profiles = {clause["document"]: clause["profile"] for clause in clauses}
    lines = sorted(len(defect["red"]) for defect in defects if profiles[defect["stem"]] == "core")
    return Figures(
        known=len(defects), binding=sum(not must.isdisjoint(defect["red"]) for defect in defects), core=len(lines),
        median=lines[len(lines) // 2], ninth_decile=lines[9 * len(lines) // 10],
    )  # fmt: skip


def main() -> None:
    """Print the figures."""
    found = figures(record("defects"), record("spec"))
    print(f"known mistakes: {found.known}; {found.binding} of them ({found.percent} %) break a MUST")
    print(
        f"failing clauses of the {found.core} mistakes of core: {found.median} in the median, "
        f"at most {found.ninth_decile} for nine in ten"
    )


if __name__ == "__main__":
    main()
