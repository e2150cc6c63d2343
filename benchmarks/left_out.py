"""What a known mistake is called when its own file is not in the catalogue, as a mistake that nobody has met.

python benchmarks/left_out.py [--draw 24] [--seed 1] [--profile core] [--read FILE]

Each one drawn, of those of the profile that break a binding clause, is put into the reference and judged on the whole
profile, without its own file and those of its twins. The table has the first name, its certainty and what
the numbers say. Whether a name is right takes a reader: fill the first column with right, near, wrong or none;
--read counts it.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from conformkit.conformance.defects import defect, defects, facts, twins
from conformkit.conformance.defects.kills import kills, named
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level, clauses, clauses_of

COLUMNS = ("read", "mistake", "clause", "certainty", "named", "numbers", "message")
READ = ("right", "near", "wrong", "none")


def main() -> int:
    """Print the table, or the figures of one that was read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", type=int, default=24, help="how many known mistakes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", default="core")
    parser.add_argument("--read", type=Path, help="a table that somebody has read")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(named_without(asked.one)))
    elif asked.read:
        with asked.read.open(encoding="utf-8", newline="") as file:
            marks = Counter(row["read"] for row in csv.DictReader(file, delimiter="\t"))
        print(", ".join(f"{marks[mark]} {mark}" for mark in READ))
    else:
        tell(drawn(asked.draw, asked.seed, asked.profile))
    return 0


def drawn(number: int, seed: int, profile: str) -> list[str]:
    """Return known mistakes that break a binding clause of a profile, the same ones for the same seed."""
    must = {name for name, one in clauses_of(profile).items() if one.level is Level.MUST}
    binding = sorted(name for name, broken in named().items() if not must.isdisjoint(broken))
    return random.Random(seed).sample(binding, min(number, len(binding)))  # noqa: S311 -- no secret


def tell(names: list[str]) -> None:
    """Print what each is called, a line as soon as it is known, then how many have a name of which certainty."""
    print(*COLUMNS, sep="\t")
    count: Counter[str] = Counter()
    for name in names:
        ended = subprocess.run([sys.executable, "-P", __file__, "--one", name], stdout=subprocess.PIPE, check=True)
        row: dict[str, str] = json.loads(ended.stdout)
        count[row["certainty"] or ("by the numbers alone" if row["numbers"] else "none")] += 1
        print(*(row[column] for column in COLUMNS), sep="\t", flush=True)
    print(
        f"{len(names)} known mistakes:",
        ", ".join(f"{number} {kind}" for kind, number in count.most_common()),
        file=sys.stderr,
    )


def named_without(name: str) -> dict[str, str]:
    """Judge the reference with a known mistake that the catalogue does not hold; return its row of the table."""
    own = defect(name)
    assert own is not None
    profile = clauses()[own.clauses[0]].profile
    without = {name, *twins.twins_of(name)}
    forget(without)
    with tempfile.TemporaryDirectory() as folder:
        package = write_reference(Path(folder) / "patched", own.patches, own.variant, base=own.base)
        report = run(RunRequest(impl=str(package), profile=profile, discover=False))
    red = [result for result in report.results if result.verdict.red and report.breaks(result)]
    return {"read": "", "mistake": f"{name}: {own.title}", **first_name(red)}


def forget(names: set[str]) -> None:
    """Take known mistakes out of the catalogue of this process."""
    table = facts.places()
    assert isinstance(table, dict)
    for name in names:
        table.pop(name)
    for told in (defects, defect, kills, named, facts._facts, twins._groups):  # noqa: SLF001 -- what was read before
        told.cache_clear()


def first_name(red: list[Result]) -> dict[str, str]:
    """Return the first name that a report gives, the surest one, and the first relation in its numbers."""
    hints = [(hint, result) for result in red for hint in result.looks_like]
    order = ("exact", "likely", "unsure")
    hint, result = min(hints, key=lambda pair: order.index(pair[0].certainty), default=(None, red[0] if red else None))
    numbers = next(
        (str(r.finding.relation) for r in red if r.finding is not None and r.finding.relation is not None), ""
    )
    return {
        "clause": result.clause.id if result is not None else "", "numbers": numbers,
        "message": result.message if result is not None else "",
        "certainty": str(hint.certainty) if hint is not None else "", "named": hint.title if hint is not None else "",
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
