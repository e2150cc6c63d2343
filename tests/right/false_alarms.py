"""Judge right implementations with many seeds: none may break a binding clause.

python tests/right/false_alarms.py [--seeds N] [--profile NAME] [--without PREFIX] [--dtype NAME] [NAME|PATH …]

Each is loaded once and judged with seeds 0 … N-1, by the clauses of the profile except those with the prefix. Without
names: the reference, and all of tests/right_lm or tests/right_seq2seq, else of tests/right and the examples that are
right; and those in tests/right_wild that the profile judges.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import PROFILES, Level, clauses_of

ROOT = Path(__file__).resolve().parents[2]
WRONG = {"three_mistakes"}
"""Examples that are wrong on purpose."""
WILD = ROOT / "tests" / "right_wild"
"""Packages by authors who had not seen the law. Those that declare a Transformer are judged by profile seq2seq."""


def right_ones(profile: str = "core") -> list[str]:
    """Return what is right, except for tests/right_wild, as arguments of `--impl`."""
    found = ["conformkit.reference"]
    own = [ROOT / "examples", ROOT / "tests" / "right"] if profile == "core" else [ROOT / "tests" / f"right_{profile}"]
    for folder in own:
        for entry in sorted(folder.iterdir()):
            single = entry.suffix == ".py" and entry.stem not in {"__init__", Path(__file__).stem}
            single = single and not entry.stem.startswith("test_")
            sources = entry.is_dir() and (list(entry.glob("*.py")) or list(entry.glob("src/*/*.py")))
            if single or (sources and entry.name not in WRONG):
                found.append(str(entry))
    return found


def wild_ones(profile: str = "core") -> list[str]:
    """Return what is in tests/right_wild and judged by this profile, as arguments of `--impl`."""
    found = []
    for declared in sorted(WILD.glob("*/conform.toml")):
        components = tomllib.loads(declared.read_text(encoding="utf-8")).get("components", {})
        if profile == ("seq2seq" if "Transformer" in components else "core"):
            found.append(str(declared.parent))
    return found


def alarms(
    impl: str, seeds: Sequence[int], profile: str = "core", without: str | tuple[str, ...] = "-",
    dtype: str = "",
    warm: WorkerFactory | None = None,
) -> Iterator[tuple[int, Result]]:  # fmt: skip
    """Yield the binding clauses that an implementation breaks, with the seed."""
    with opened(RunRequest(impl=impl, profile=profile, dtype=dtype), warm) as (implementation, _):
        for seed in seeds:
            judge = Judge(implementation, tests(profile), seed=seed)
            for name, clause in clauses_of(profile).items():
                if clause.profile != profile or name.startswith(without):
                    continue
                result = judge.result(name)
                if clause.level is Level.MUST and result.verdict.red:
                    yield seed, result


def main() -> int:
    """Print a line for each implementation and each alarm; return 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--profile", choices=list(PROFILES), default="core")
    parser.add_argument("--without", default="-", help="leave out clauses whose ids begin so")
    parser.add_argument("--dtype", default="", help="the number format to judge in, whatever is declared")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    total = 0
    for impl in options.names or [*right_ones(options.profile), *wild_ones(options.profile)]:
        found = list(alarms(impl, range(options.seeds), options.profile, options.without, options.dtype))
        total += len(found)
        print(f"{Path(impl).name}: {len(found)} alarms in {options.seeds} seeds", flush=True)
        for seed, result in found:
            print(f"    seed {seed}: {result.clause.id} {result.verdict}: {result.message}", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
