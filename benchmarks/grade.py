"""Measure `conform grade`: the cost of a sandboxed submission, the gain of a second worker, the effect of five kills.

python benchmarks/grade.py [cost] [workers] [kills] [--submissions 200] [--kills 5] [--rounds 3] [--seed 1]

Ratios compare runs on the same machine, because seconds differ between machines. By default all three are measured.
It needs both cores: with other load, a second worker seems useless.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from class_of import FORMS, RIGHT, make

GRADE = (sys.executable, "-P", "-m", "conformkit.cli", "grade")
POLICY = """
seed = 11
hints = {hints}
isolation = "{isolation}"

[limits]
load_seconds = {load}
call_seconds = {call}

[[groups]]
name = "points"
points = 100
clauses = [{clauses}]
"""
FEW = '"SDPA-OUT-SHAPE"'
MANY = '"SDPA-*", "MASK-*", "MHA-*"'
EXTRA = 4
"""The number of further submissions, which cost no start."""
ROUNDS = 8
"""The number of further submissions per worker: at the end one of two is idle for up to one submission."""
LATE_SECONDS = 2.0
"""A run is killed at a random moment, up to this many seconds after it has stored a result."""


def main() -> int:
    """Measure the requested figures, print the table, and return 0 when every grade survived the kills."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["cost", "workers", "kills", []], default=[])
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isolation", choices=["sandbox", "process"], default="sandbox")
    parser.add_argument("-n", type=int, default=2, help="workers in the run that is killed")
    options = parser.parse_args()
    parts = options.parts or ["cost", "workers", "kills"]
    print("| what | ratio or figure | want |", "| --- | --- | --- |", sep="\n")
    with tempfile.TemporaryDirectory(prefix="conform-bench-") as name:
        folder = Path(name)
        if "cost" in parts:
            cost(folder, options)
        if "workers" in parts:
            workers(folder, options)
        return kills(folder, options) if "kills" in parts else 0


def policy(path: Path, clauses: str, isolation: str, *, hints: int = 0, call: int = 20, load: int = 120) -> Path:
    """Write a policy and return its path."""
    text = POLICY.format(clauses=clauses, isolation=isolation, hints=hints, call=call, load=load)
    path.write_text(text, encoding="utf-8")
    return path


def copies(folder: Path, number: int) -> Path:
    """Write this number of correct submissions, which differ in a comment."""
    folder.mkdir()
    code = RIGHT.read_text(encoding="utf-8")
    for n in range(number):
        (folder / f"s{n}.py").write_text(f"{code}\n# {n}\n", encoding="utf-8")
    return folder


def seconds(*command: str) -> float:
    """Return the seconds of a command, which must succeed."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def graded(folder: Path, rules: Path, out: Path, *options: str) -> float:
    """Return the seconds of grading a folder."""
    return seconds(*GRADE, str(folder), "--policy", str(rules), "--out", str(out), *options)


def cost(folder: Path, options: argparse.Namespace) -> None:
    """Compare the time of one more submission, judged on one clause, with a bare import of torch, in turns."""
    rules = policy(folder / "few.toml", FEW, options.isolation)
    one, more = copies(folder / "one", 1), copies(folder / "more", 1 + EXTRA)
    own, torch = [], []
    for number in range(options.rounds):
        torch.append(seconds(sys.executable, "-c", "import torch"))
        first = graded(one, rules, folder / f"one{number}", "-n", "1")
        own.append((graded(more, rules, folder / f"more{number}", "-n", "1") - first) / EXTRA)
        torch.append(seconds(sys.executable, "-c", "import torch"))
    mine, bare = statistics.median(own), statistics.median(torch)
    ratio = f"{mine / bare:.2f} ({mine:.2f} s ÷ {bare:.2f} s)"
    what = f"a submission in isolation {options.isolation}, one clause ÷ `import torch`"
    print(f"| {what} | {ratio} | at most 1.5 |", flush=True)


def workers(folder: Path, options: argparse.Namespace) -> None:
    """Compare the throughput of two workers with that of one, in turns."""
    rules = policy(folder / "many.toml", MANY, options.isolation)
    small, large = copies(folder / "small", 2), copies(folder / "large", 2 + 2 * ROUNDS)
    gains = []
    for number in range(options.rounds):
        taken = []
        for n in ("1", "2"):
            start = graded(small, rules, folder / f"small{number}-{n}", "-n", n)
            taken.append(graded(large, rules, folder / f"large{number}-{n}", "-n", n) - start)
        gains.append(taken[0] / taken[1])
    spread = ", ".join(f"{gain:.2f}" for gain in gains)
    print(
        f"| throughput of two workers ÷ one | {statistics.median(gains):.2f} (of {spread}) | at least 1.8 |", flush=True
    )


def kills(folder: Path, options: argparse.Namespace) -> int:
    """Grade a class undisturbed, and once more with kills at random moments; compare every grade."""
    kinds = make(folder / "class", options.submissions, options.seed)
    rules = policy(folder / "kills.toml", MANY, options.isolation, hints=1, call=5, load=20)
    taken = graded(folder / "class", rules, folder / "undisturbed", "-n", str(options.n))
    wanted = grades(folder / "undisturbed")
    killed, lost = disturbed(folder, rules, options)
    found = grades(folder / "killed")
    different = [name for name in kinds if name not in wanted or wanted[name] != found.get(name)]
    for name in different:
        print(f"{name} ({kinds[name]}): {difference(wanted.get(name), found.get(name))}")
    left = [path.name for path in (folder / "temporary").iterdir()]
    pathological = sum(kind not in FORMS for kind in kinds.values())
    what = f"{len(kinds)} submissions, {pathological} of them pathological, killed {killed} times"
    print(f"| {what}: grades that differ | {len(different)} of {len(wanted)} | 0 |")
    print(f"| … results lost or judged twice; temporary folders left | {lost}; {len(left)} | 0; 0 |")
    outcomes = dict(Counter(grade["outcome"] for grade in wanted.values()))
    print(f"\nUndisturbed: {taken:.0f} s, {60 * len(kinds) / taken:.0f} submissions per minute. {outcomes}")
    return int(bool(different or lost or left or killed < options.kills))


def disturbed(folder: Path, rules: Path, options: argparse.Namespace) -> tuple[int, int]:
    """Grade with kills; return the number of kills, and of stored results that a later run lost or replaced."""
    draw = random.Random(options.seed)  # noqa: S311 - moments, not a secret
    last = max(options.submissions - 2 * options.n, options.kills + 1)
    stages = sorted(draw.sample(range(1, last), options.kills))
    (folder / "temporary").mkdir()
    finished: dict[str, str] = {}
    killed = lost = 0
    for done in [*stages, options.submissions]:
        killed += run_until(done, folder, rules, options.n, draw.uniform(0, LATE_SECONDS))
        now = moments(folder / "killed")
        gone = [name for name, when in finished.items() if now.get(name) != when]
        print(*(f"lost or judged twice: {name}\n" for name in gone), sep="", end="")
        lost, finished = lost + len(gone), now
    return killed, lost


def run_until(done: int, folder: Path, rules: Path, workers: int, late: float) -> bool:
    """Grade until this many are stored, and some seconds more, then kill the run. Return whether it was killed."""
    command = [*GRADE, str(folder / "class"), "--policy", str(rules), "--out", str(folder / "killed")]
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    with subprocess.Popen(
        [*command, "-n", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            stored, _, total = line.strip("[").partition("]")[0].partition("/")
            if total and stored.isdigit() and int(stored) >= done and stored != total:
                time.sleep(late)
                process.send_signal(signal.SIGKILL)
                break
        process.stderr.read()
    return process.returncode == -signal.SIGKILL


def moments(out: Path) -> dict[str, str]:
    """Return when each submission was graded, by its id."""
    with sqlite3.connect(out / "grades.sqlite") as connection:
        return dict(connection.execute("SELECT submission, finished || digest FROM result"))


def grades(out: Path) -> dict[str, dict[str, Any]]:
    """Return the grade of each submission, without its seconds."""
    with sqlite3.connect(out / "grades.sqlite") as connection:
        rows = connection.execute("SELECT submission, grade FROM result").fetchall()
    found = {}
    for name, text in rows:
        grade = json.loads(text)
        for part in (grade, grade["report"] or {}, *(grade["report"] or {}).get("clauses", ())):
            part.pop("seconds", None)
        found[name] = grade
    return found


def difference(one: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """Return the differences of two grades."""
    if one is None or other is None:
        return "graded in one run only"
    keys = [key for key in one if one[key] != other.get(key)]
    if keys == ["report"]:
        pairs = zip(one["report"]["clauses"], other["report"]["clauses"], strict=False)
        return next((f"{a} or {b}" for a, b in pairs if a != b), "the report")
    return "; ".join(f"{key}: {one[key]!r} or {other.get(key)!r}" for key in keys)


if __name__ == "__main__":
    sys.exit(main())
