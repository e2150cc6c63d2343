"""What verdicts cost a program that asks for many: right, wrong and hostile code, judged by `JudgePool`.

python benchmarks/verifier.py [--submissions 60] [--seed 1] [--isolation process] [--without-order]

Wrong code is half known mistakes in the reference and half lines of one file that are wrong as students write them;
hostile code is that of benchmarks/class_of.py. Wrong code ends at the first failure. Each kind is judged by a pool of
its own with one worker, the wrong ones by two workers, too; processor time is that of all processes, since seconds say
little on a machine that does other work. Every verdict is compared with that of `conform run`, to the end.
`--without-order` judges in the order of the law, to see what benchmarks/killing_order.py saves.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from class_of import MISTAKES, PATHOLOGICAL, RIGHT

from conformkit.conformance import JudgePool
from conformkit.conformance.api.candidate import Candidate
from conformkit.conformance.api.judgment import Judgment
from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.spec.clauses import select
from conformkit.spec.variants import CANONICAL

BUDGETS = {"hostile": 20.0}
"""Seconds that a code may take, so that endless ones end; others have as many as `judge` gives by default."""


@dataclass(frozen=True)
class Cost:
    """What judging some codes took."""

    verdicts: Sequence[Judgment]
    seconds: float
    processor: float


def main() -> int:
    """Make the submissions, judge them, print a table, and return 1 where a verdict is another one to the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--submissions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isolation", default="process", choices=("process", "sandbox"))
    parser.add_argument("--without-order", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = made(Path(folder), options.submissions, random.Random(options.seed))  # noqa: S311 - a draw of cases
        with patch("conformkit.conformance.runner.soonest_first", list) if options.without_order else patch.dict({}):
            differing = told(kinds, options.isolation)
    print(f"verdicts that differ from those of a whole run: {differing}")
    return int(differing > 0)


def made(folder: Path, count: int, draw: random.Random) -> Mapping[str, Sequence[Candidate]]:
    """Return submissions by kind: a third of them right or hostile, the others wrong."""
    right = RIGHT.read_text(encoding="utf-8")
    core = {clause.id for clause in select((), "core")}
    known = [one for one in defects().values() if one.variant == CANONICAL and core.issuperset(one.clauses)]
    mistakes = [
        write_reference(folder / f"known{number}" / "known", one.patches)
        for number, one in enumerate(draw.sample(known, count // 3))
    ]
    lines = [right.replace(*draw.choice(MISTAKES), 1) + f"\n# {number}\n" for number in range(count // 3)]
    rights = [f"{right}\n# {number}\n" for number in range(count // 6)]
    names = draw.sample(sorted(PATHOLOGICAL), min(count // 6, len(PATHOLOGICAL)))
    hostile = [{name: _text(text) for name, text in PATHOLOGICAL[one](right).items()} for one in names]
    return {"right": rights, "known mistakes": mistakes, "wrong lines": lines, "hostile": hostile}


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("latin-1")


def told(kinds: Mapping[str, Sequence[Candidate]], isolation: str) -> int:
    """Print what each kind costs; return how many verdicts a whole run does not give."""
    differing = 0
    for kind, codes in kinds.items():
        budget = BUDGETS.get(kind, 600.0)
        one = cost(codes, isolation, workers=1, stop=kind != "right", seconds=budget)
        print(_line(kind, one), flush=True)
        if kind in {"known mistakes", "wrong lines"}:
            two = cost(codes, isolation, workers=2, stop=True)
            print(f"{_line(f'{kind}, two workers', two)}; {one.seconds / two.seconds:.2f} x one worker", flush=True)
        whole = cost(codes, isolation, workers=2, stop=False, seconds=budget) if kind != "right" else one
        print(_line(f"{kind}, to the end", whole), flush=True)
        differing += sum(a.outcome != b.outcome for a, b in zip(one.verdicts, whole.verdicts, strict=True))
    return differing


def _line(words: str, found: Cost) -> str:
    number = len(found.verdicts)
    red = sum(not verdict.conforms for verdict in found.verdicts)
    each = f"{found.processor / number:.2f} CPU-s and {found.seconds / number:.2f} s each"
    return f"{words}: {number} verdicts, {red} no pass; {each}"


def cost(codes: Sequence[Candidate], isolation: str, *, workers: int, stop: bool, seconds: float = 600.0) -> Cost:
    """Judge codes by a pool of their own."""
    before, started = _processor(), time.perf_counter()
    with JudgePool(workers, isolation=isolation, seed=1, stop=stop, seconds=seconds, strict=False) as judges:
        verdicts = list(judges.map(codes))
        took = time.perf_counter() - started
    return Cost(verdicts, took, _processor() - before)


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
