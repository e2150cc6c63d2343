"""Judge right implementations with many seeds: none may break a binding clause.

python tests/right/false_alarms.py [--seeds N] [--day D] [--profile NAME] [--without PREFIX]… [--dtype NAME]
                                   [--jobs N] [NAME|PATH …]

Each is loaded once and judged with seed 0 and N-1 others, drawn by the day, by the clauses of the profile except those
with a prefix. Without a profile: one after the other, all of them. Without names: the reference, and all packages of the
profile: tests/right and the examples that are right for core, else tests/right_NAME; and those in tests/right_wild.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Level, clauses_of
from conformkit.spec.profiles import PROFILES

ROOT = Path(__file__).resolve().parents[2]
WRONG = {"three_mistakes"}
"""Examples that are wrong on purpose."""
JUDGED = [name for name, profile in PROFILES.items() if not profile.selects]
"""Profiles with documents of their own: the others select from these."""
WILD = ROOT / "tests" / "right_wild"
"""Packages by authors who had not seen the law. Those that declare a Transformer are judged by profile seq2seq."""

ALSO = {
    "core": ["right_seq2seq_alone/decoder"],
    "seq2seq": [
        "right_seq2seq_alone/encoder",
        *(f"right_seq2seq_tools/{n}" for n in ("arrays.py", "opposite", "torch_pairs")),
    ],
}
"""Parts of a profile, alone: they have tests of their own."""
ONCE_RED = [
    ("conformkit.reference", "seq2seq", "S2SBEAM-SIZES", 1285954951),  # 8 beams, 7 ids: nothing is right for the last
    (str(ROOT / "tests/right_finetune/like_trl.py"), "finetune", "GADV-CENTER", 874008741),  # two rewards, nearly equal
]
"""Draws at which a clause was red for right code, each for good."""


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
            yield from ((seed, result) for result in judged(implementation, seed, profile, without) if is_alarm(result))


def judged(
    implementation: Implementation, seed: int, profile: str = "core", without: str | tuple[str, ...] = "-"
) -> Iterator[Result]:
    """Yield the results of an implementation that is loaded, by the clauses of the profile alone.

    Where clauses are left out, those about every size are judged as if what they need held: they need each other.
    """
    judge = Judge(implementation, tests(profile), seed=seed)
    for name, clause in clauses_of(profile).items():
        if clause.profile == profile and not name.startswith(without):
            yield judge.alone(name) if clause.sizes and without not in {"-", ()} else judge.result(name)


def is_alarm(result: Result) -> bool:
    """Whether right code breaks a binding clause."""
    return result.clause.level is Level.MUST and result.verdict.red


def seeds_of(number: int, day: int) -> list[int]:
    """Return seed 0, which shifts no sizes, and as many others as are asked for: the same all day."""
    return [0, *random.Random(day).sample(range(1, 1 << 31), max(number - 1, 0))]  # noqa: S311 -- no secret


def _judged(profile: str, options: argparse.Namespace, impl: str) -> list[tuple[int, str]]:
    """Return the alarms of one implementation, as text."""
    without = tuple(options.without) or "-"
    found = alarms(impl, seeds_of(options.seeds, options.day), profile, without, options.dtype)
    return [(seed, f"{one.clause.id} {one.verdict}: {one.message}") for seed, one in found]


def main() -> int:
    """Print a line for each implementation and each alarm; return 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--day", type=int, default=datetime.datetime.now(tz=datetime.UTC).toordinal())
    parser.add_argument("--profile", choices=JUDGED, help="one of them, for all")
    parser.add_argument("--without", action="append", default=[], help="leave out clauses whose ids begin so")
    parser.add_argument("--dtype", default="", help="the number format to judge in, whatever is declared")
    parser.add_argument("--jobs", type=int, default=1, help="implementations judged side by side")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    total = 0
    for profile in [options.profile] if options.profile else JUDGED:
        others = [str(ROOT / "tests" / name) for name in ALSO.get(profile, ())]
        impls = options.names or [*right_ones(profile), *wild_ones(profile), *others]
        with ProcessPoolExecutor(options.jobs) as pool:
            for impl, found in zip(impls, pool.map(partial(_judged, profile, options), impls), strict=True):
                total += len(found)
                print(f"{profile} {Path(impl).name}: {len(found)} alarms in {options.seeds} seeds", flush=True)
                for seed, message in found:
                    print(f"    seed {seed}: {message}", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
