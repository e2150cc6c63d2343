"""Count what a run of each profile does on the reference, since counts, unlike seconds, don't depend on the machine.

python benchmarks/budgets.py [PROFILE …]    # compare with budgets.toml; exit code 1 where something differs
python benchmarks/budgets.py --update [PROFILE …]

A change that makes a run do more, or less, changes benchmarks/budgets.toml with it, and the diff is read in review.
tests/cli/test_budgets.py compares exactly, but for how long something is trained: lessons end when a loss is low
enough, and that takes a few steps more on one processor than on another.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from conformkit.conformance.driver.client.session import Arrays, Reply, Session
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run
from conformkit.conformance.subject.component import Instance

FILE = Path(__file__).with_suffix(".toml")
PROFILES = ("core", "lm", "seq2seq", "encoder", "vit", "paths", "finetune")
KINDS = {
    "build": "builds", "call": "calls", "ask": "calls", "trace": "calls", "vjp": "backward passes",
    "loop": "lessons",
}  # fmt: skip
"""How operations of the worker are counted; the others are part of `round trips` alone."""
COUNTED = (
    "processes", "round trips", "megabytes", "builds", "calls", "backward passes", "lessons", "training updates",
    "oracle calls",
)  # fmt: skip
OF_TRAINING, SLACK = frozenset({"round trips", "megabytes", "calls", "training updates"}), 0.1
"""What depends on how long lessons last, in profiles that have some, and by how much it may differ."""
HEAD = "# What one run of each profile does on the reference. Written by benchmarks/budgets.py --update.\n"


def main() -> int:
    """Count, compare or update, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("profiles", nargs="*", metavar="PROFILE", default=PROFILES, help=", ".join(PROFILES))
    parser.add_argument("--update", action="store_true", help="write what was counted to benchmarks/budgets.toml")
    options = parser.parse_args()
    if unknown := sorted(set(options.profiles) - set(PROFILES)):
        parser.error(f"there is no profile {', '.join(unknown)}; profiles: {', '.join(PROFILES)}")
    known, changed = budgets(), False
    for name in options.profiles:
        found = counted(name)
        lines = differences(known.get(name, {}), found)
        print("\n".join((f"{name}:", *(lines or ["  as in budgets.toml"]))))
        changed |= bool(lines)
        known[name] = found
    if options.update:
        FILE.write_text(written(known), encoding="utf-8")
    return int(changed and not options.update)


def budgets() -> dict[str, dict[str, int]]:
    """Return the budgets by profile."""
    return tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def counted(profile: str) -> dict[str, int]:
    """Return what a run of a profile does on the reference with one worker. Raises RuntimeError if it fails there."""
    with counting() as count:
        report = run(RunRequest("conformkit.reference", profile=profile, diagnose=False))
    if not report.conforms:
        raise RuntimeError(f"the reference does not conform to {profile}: a run that fails does something else")
    return {name: found for name in COUNTED if (found := _rounded(name, count))}


def _rounded(name: str, count: Mapping[str, int]) -> int:
    return round(count["bytes"] / 1e6) if name == "megabytes" else count[name]


def differences(known: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """Return a line for each count that differs."""
    lessons = bool(known.get("lessons", 0))
    names = (name for name in COUNTED if _differs(name, known.get(name, 0), found.get(name, 0), lessons=lessons))
    return [f"  {name}: {found.get(name, 0):,}, the budget is {known.get(name, 0):,}" for name in names]


def _differs(name: str, known: int, found: int, *, lessons: bool) -> bool:
    return abs(found - known) > (SLACK * known if lessons and name in OF_TRAINING else 0)


def written(known: Mapping[str, Mapping[str, int]]) -> str:
    """Return the file with these budgets."""
    tables = (
        [f"\n[{name}]", *(f'"{what}" = {number}' for what, number in known[name].items())]
        for name in PROFILES
        if name in known
    )
    return HEAD + "".join(f"{line}\n" for table in tables for line in table)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count what runs of this process do in the meantime."""
    count: Counter[str] = Counter()
    ask, define, spawn = Session.request, Instance.defined, Session._ask_for_worker  # noqa: SLF001

    def request(self: Session, header: Mapping[str, Any], tensors: Arrays = {}, seconds: float | None = None) -> Reply:  # noqa: B006
        count.update({"round trips": 1, "bytes": _size(tensors)})
        count.update(_operations(header))
        reply = ask(self, header, tensors, seconds)
        count["bytes"] += _size(reply.tensors)
        return reply

    def defined(self: Instance, *arguments: Any, **options: Any) -> Any:
        count["oracle calls"] += 1
        return define(self, *arguments, **options)

    def ask_for_worker(self: Session) -> Any:
        count["processes"] += 1
        return spawn(self)

    with (
        patch.object(Session, "request", request),
        patch.object(Instance, "defined", defined),
        patch.object(Session, "_ask_for_worker", ask_for_worker),
    ):
        yield count


def _size(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays.values())


def _operations(header: Mapping[str, Any]) -> Counter[str]:
    """Return what is counted of a request, and of those within a batch."""
    inner: Iterable[Mapping[str, Any]] = header["requests"] if header["op"] == "batch" else (header,)
    found = Counter(KINDS[one["op"]] for one in inner if one["op"] in KINDS)
    return found + Counter({"training updates": sum(len(one["rates"]) for one in inner if one["op"] == "train")})


if __name__ == "__main__":
    sys.exit(main())
