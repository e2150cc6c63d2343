"""Judge every causal language model of the installed transformers, small and with random weights, and print a table.

python benchmarks/sweep [NAME …] [--minutes 15] [--seed 0] [--keep FOLDER]

NAME is a model_type, such as llama; without names all are judged, in an order drawn with the seed, until the minutes
are over. It reports, and fails nobody. transformers is no dependency of the kit: install it into an environment of its
own, next to the kit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from package import ONLY, WITHOUT, write_package

CONFORM = (sys.executable, "-P", "-m", "conformkit.cli")
LONGEST = 240
"""Seconds for one model."""
ROW = "| `{model}` | {says} | {passed} | {seconds:.0f} |"


@dataclass(frozen=True)
class Judged:
    """What became of a model."""

    model: str
    says: str
    passed: int
    seconds: float

    @property
    def row(self) -> str:
        """Its row of the table."""
        return ROW.format(model=self.model, says=self.says, passed=self.passed, seconds=self.seconds)


def main() -> int:
    """Judge models until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for packages and reports, which are removed otherwise")
    asked = parser.parse_args()
    known = models()
    names = asked.names or random.Random(asked.seed).sample(sorted(known), len(known))  # noqa: S311
    if strange := [name for name in names if name not in known]:
        parser.error(f"transformers has no causal language model {', '.join(strange)}")
    print("| model | says | clauses passed | seconds |\n| --- | --- | --- | --- |", flush=True)
    start, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            if time.monotonic() - start > 60 * asked.minutes:
                break
            print(judged(name, known[name], asked.keep or Path(scratch)).row, flush=True)
            done += 1
    print(f"\n{done} of {len(names)} models", flush=True)
    return 0


def models() -> Mapping[str, str]:
    """Return the class of each model, by model_type."""
    classes = import_module("transformers.models.auto.modeling_auto").MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return {name: found for name, found in classes.items() if isinstance(found, str)}


def judged(model: str, name: str, folder: Path) -> Judged:
    """Judge one model in a process of its own."""
    package = write_package(folder / f"sweep_{model.replace('-', '_')}", name)
    report = package / "report.json"
    selected = ("--profile", "core,paths", "--only", ",".join(ONLY), "--without", ",".join(WITHOUT))
    options = ("--impl", str(package), *selected, "--json", str(report), "-q")
    start = time.monotonic()
    try:
        ran = subprocess.run(
            [*CONFORM, "run", *options, "-n", "1", "--seconds", str(LONGEST)],
            capture_output=True, text=True, check=False, timeout=2 * LONGEST,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Judged(model, "not judged: it took too long", 0, time.monotonic() - start)
    seconds = time.monotonic() - start
    if not report.exists():
        return Judged(model, f"not judged: {first_line(ran.stderr or ran.stdout)}", 0, seconds)
    return Judged(model, *summary(json.loads(report.read_text())), seconds)


def summary(report: Mapping[str, Any]) -> tuple[str, int]:
    """Return in words what a report says, and how many clauses passed."""
    clauses = report["clauses"]
    passed = sum(each["verdict"] == "pass" for each in clauses)
    red = [each for each in clauses if each["verdict"] in {"fail", "error", "crash", "timeout"}]
    must, others = ([each["id"] for each in red if (each["level"] == "MUST") == binding] for binding in (True, False))
    if built := next((each for each in red if "construct" in each.get("message", "")), None):
        return f"not judged: {first_line(built['message'])}", passed
    if not passed:
        said = next((each["message"] for each in red if each["message"]), "nothing could be compared")
        return f"not judged: {first_line(said)}", passed
    says = f"not {', '.join(must)}" if must else "conforms"
    return says + (f"; as SHOULD, not {', '.join(others)}" if others else ""), passed


def first_line(text: str) -> str:
    """Return the first line of a text, as a cell of a table holds it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no words")
    return line.replace("|", "/")[:120]


if __name__ == "__main__":
    sys.exit(main())
