"""Judge a set of packages that was written by somebody who had not seen the law; README.md says how to write one.

python benchmarks/unseen mistakes FOLDER [--seed 0] [--jobs 2]
python benchmarks/unseen right FOLDER [--seeds 1] [--jobs 2]

Reports are kept in FOLDER/reports: what is there is not judged again.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

CONFORM = (sys.executable, "-P", "-m", "conformkit.cli")
APART = 7
"""Seeds of neighboring rows differ by this."""
READ = ("right", "near", "wrong", "none")
LINES = 10
"""A file written by hand has so many lines at most."""
Row = dict[str, str]
Report = dict[str, Any]


def main() -> int:
    """Judge a set and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kind", choices=("mistakes", "right"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the first row of a set of mistakes")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds right code is judged with")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    index = asked.folder / "index.tsv"
    if not index.is_file():
        parser.error(f"there is no {index}: README.md says what stands in it")
    rows = read(index)
    (asked.folder / "reports").mkdir(exist_ok=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        if asked.kind == "mistakes":
            seeds = range(asked.seed, asked.seed + APART * len(rows), APART)
            reports = list(pool.map(partial(judged, asked.folder), rows, seeds))
            print_mistakes(asked.folder, rows, reports, before(asked.folder, rows))
        else:
            print_right(rows, list(pool.map(partial(met, asked.folder, asked.seeds), rows)))
    return 0


def read(path: Path) -> list[Row]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def package(home: Path) -> Path:
    """Return the package of a row, a folder or a file."""
    return home / "pkg" if (home / "pkg").is_dir() else home / "pkg.py"


def judged(folder: Path, row: Row, seed: int) -> Report | None:
    """Return the report on a package; None where it could not be judged at all."""
    kept = folder / "reports" / f"{row['name']}.{seed}.json"
    return run(package(folder / row["name"]), row["profile"], seed, kept)


def before(folder: Path, rows: Sequence[Row]) -> dict[tuple[str, str], set[str]]:
    """Return, by right package and profile, the clauses that it falls short of before a mistake is made in it."""
    found = {}
    for base, profile in sorted({(row["base"], row["profile"]) for row in rows}):
        report = judged(folder, {"name": base, "profile": profile}, 0)
        found[base, profile] = {clause["id"] for clause in fallen_short_of(report)} if report else set()
    return found


def fallen_short_of(report: Report) -> list[Report]:
    """Return a report's results that are neither a pass nor about something else."""
    return [clause for clause in report["clauses"] if clause["verdict"] in {"fail", "error", "crash", "timeout"}]


def run(where: Path, profile: str, seed: int, kept: Path) -> Report | None:
    """Judge one package, or read the report that is kept."""
    if not kept.is_file():
        options = ("--profile", profile, "--seed", str(seed), "-n", "1", "--json", str(kept.resolve()))
        command = (*CONFORM, "run", "--impl", str(where.resolve()), *options)
        subprocess.run(command, check=False, capture_output=True, cwd=where.parent)
    return json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else None


# -- mistakes ----------------------------------------------------------------------------------------------------------


def print_mistakes(
    folder: Path,
    rows: Sequence[Row],
    reports: Sequence[Report | None],
    known_before: Mapping[tuple[str, str], set[str]],
) -> None:
    """Print what was caught and named, and write names.tsv for whoever reads the names."""
    table = [
        {**row, **outcome(report, known_before[row["base"], row["profile"]])}
        for row, report in zip(rows, reports, strict=True)
    ]
    known = {row["name"]: row.get("read", "") for row in names(folder)}
    columns = (
        "name",
        "profile",
        "base",
        "mistake",
        "threshold",
        "caught",
        "clause",
        "certainty",
        "named",
        "from",
        "read",
    )
    with (folder / "names.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter="\t", extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows({**row, "read": known.get(row["name"], "")} for row in table)
    print("| profile | judged | by a MUST | by any clause | with a size | exact | likely | unsure |\n|" + " --- |" * 8)
    for profile in [*sorted({row["profile"] for row in rows}), "all"]:
        own = [row for row in table if profile in {row["profile"], "all"}]
        must, any_clause = (count(own, "caught", kinds) for kinds in (("MUST",), ("MUST", "SHOULD")))
        sized = sum(bool(row["from"]) for row in own)
        named = (count(own, "certainty", (kind,)) for kind in ("exact", "likely", "unsure"))
        print("| " + " | ".join(str(cell) for cell in (profile, len(own), must, any_clause, sized, *named)) + " |")
    slipped = [f"{row['name']}: {row['mistake']}" for row in table if row["caught"] != "MUST"]
    print("\nnot caught by a MUST:", *slipped, sep="\n  ")
    if any(known.values()):
        marks = Counter(known.values())
        print("\nfirst names, as read:", ", ".join(f"{marks[mark]} {mark}" for mark in READ))


def names(folder: Path) -> list[Row]:
    """Return what stands in names.tsv."""
    return read(folder / "names.tsv") if (folder / "names.tsv").is_file() else []


def count(rows: Sequence[Mapping[str, str]], column: str, kinds: Sequence[str]) -> int:
    """Return how many rows have one of these in a column."""
    return sum(row[column] in kinds for row in rows)


def outcome(report: Report | None, known_before: set[str]) -> Row:
    """Return by what a mistake was caught, the first name that it got, and the size from which on it shows.

    What the right package falls short of says nothing about the mistake.
    """
    if report is None:
        return {"caught": "not judged", "clause": "", "certainty": "", "named": "", "from": ""}
    wrong = [clause for clause in fallen_short_of(report) if clause["id"] not in known_before]
    red = [c for c in wrong if c["breaks"]] or wrong
    hints = [hint for clause in red for hint in clause["looks_like"]]
    first = min(hints, key=lambda hint: ("exact", "likely", "unsure").index(hint["certainty"]), default={})
    caught = "MUST" if any(c["breaks"] for c in red) else "SHOULD" if red else "nothing"
    if not red and not report["conforms"]:
        caught = "not judged"
    return {
        "caught": caught,
        "clause": red[0]["id"] if red else "",
        "certainty": first.get("certainty", ""),
        "named": first.get("title", ""),
        "from": next((c["threshold"] for c in red if c["threshold"]), ""),
    }


# -- right code --------------------------------------------------------------------------------------------------------


def met(folder: Path, seeds: int, row: Row) -> tuple[str, str]:
    """Return the file with which a package conforms at every seed, or none, and what it met with each file."""
    home, told = folder / row["name"], []
    for kind, write in (("no file", alone), ("adapt", drafted), ("by hand", by_hand)):
        with tempfile.TemporaryDirectory() as copy:
            where = package(Path(shutil.copytree(home, Path(copy) / "home")))
            problem = write(where, row["profile"])
            for seed in range(seeds if not problem else 0):
                kept = folder / "reports" / f"{row['name']}.{kind.replace(' ', '_')}.{seed}.json"
                problem = problem or trouble(run(where, row["profile"], seed, kept), seed)
        if not problem:
            return kind, "; ".join(told)
        told.append(f"{kind}: {problem}")
    return "none", "; ".join(told)


def alone(where: Path, _: str) -> str:
    """Write nothing: where the contract's names are used, nothing is needed."""
    return f"{beside(where).name} is there" if beside(where).exists() else ""


def drafted(where: Path, profile: str) -> str:
    """Write the draft of `conform adapt` next to a package; return why there is none."""
    command = (*CONFORM, "adapt", str(where), "--profile", profile)
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=where.parent)
    if not ended.stdout.strip():
        return f"no draft, exit {ended.returncode}"
    beside(where).write_text(ended.stdout, encoding="utf-8")
    return ""


def by_hand(where: Path, _: str) -> str:
    """Put the file written by hand next to a package; return what is wrong with it."""
    written = where.parent / "by_hand.toml"
    if not written.is_file():
        return "there is none"
    text = written.read_text(encoding="utf-8")
    if sum(bool(line.strip()) for line in text.splitlines()) > LINES:
        return f"more than {LINES} lines"
    beside(where).write_text(text, encoding="utf-8")
    return ""


def beside(where: Path) -> Path:
    """Return the place of a package's conform.toml."""
    return (where if where.is_dir() else where.parent) / "conform.toml"


def trouble(report: Report | None, seed: int) -> str:
    """Return what keeps a package from conforming, or nothing."""
    if report is None:
        return "it could not be judged"
    if report["conforms"]:
        return ""
    red = [clause["id"] for clause in report["clauses"] if clause["breaks"]]
    missing = [f"{name} missing" for name in report["missing"]]
    return f"seed {seed}: {', '.join([*red[:4], *missing]) or 'not judged'}"


def print_right(rows: Sequence[Row], found: Sequence[tuple[str, str]]) -> None:
    """Print which packages conform, and what the others met."""
    told = Counter(file for file, _ in found)
    print(f"{len(rows)} packages: {told['no file']} conform without any file,", end=" ")
    print(f"{told['adapt']} more with the draft of `conform adapt`,", end=" ")
    print(f"{told['by hand']} more with a file of at most {LINES} lines, {told['none']} with neither")
    for row, (file, problems) in zip(rows, found, strict=True):
        if problems:
            print(f"  {row['name']}, {row['style']}: conforms with {file}; {problems}")


if __name__ == "__main__":
    sys.exit(main())
