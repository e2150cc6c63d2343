"""Learn in which order clauses find a mistake soonest, for runs that end at the first failure.

python benchmarks/killing_order.py            # write conformance/defects/killing_order.json
python benchmarks/killing_order.py --show     # only say what known mistakes cost until the first failure

Each clause of each profile is timed on the reference, with the clauses that it needs taken for granted. Then the clause
that catches most known mistakes a second comes first, of those that the ones before it have left, with the time of what
it needs. A mistake that people make often counts four times one that they make rarely. Clauses that catch nothing more
are not in the file: they come last, in the order of the law.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kills
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened, prepared
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import clause, select
from conformkit.spec.profiles import PROFILES

FILE = Path(__file__).resolve().parents[1] / "conformance" / "defects" / "killing_order.json"
REFERENCE = "conformkit.reference"
WEIGHTS = {"often": 4.0, "sometimes": 2.0, "rarely": 1.0}
LEAST = 0.005
"""Seconds that a clause costs at least: the reference answers at once where a choice is not its own."""


def main() -> int:
    """Measure, write or show, and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", action="store_true", help="write nothing")
    options = parser.parse_args()
    costs = measured()
    order = learned(costs, kills(), {name: WEIGHTS[one.common] for name, one in defects().items()})
    for words, ids in (("as the law has them", list(costs)), ("as learned", order)):
        seconds = list(until_caught(ids, costs, kills()))
        print(f"{words}: {statistics.mean(seconds):.2f} s a mistake, {statistics.median(seconds):.2f} in the median")
    if not options.show:
        FILE.write_text(json.dumps(order, indent=0) + "\n", encoding="utf-8")
    return 0


def measured() -> Mapping[str, float]:
    """Return the seconds that each clause takes on the reference, in the order of profiles and of the law."""
    found: dict[str, float] = {}
    for profile in PROFILES:
        request = RunRequest(impl=REFERENCE, profile=profile)
        with prepared(request) as (place, warm), opened(request, warm, located=place) as (implementation, _):
            judge = Judge(implementation, tests(profile))
            for one in select((), profile):
                if one.id not in found:
                    started = time.perf_counter()
                    judge.alone(one.id)
                    found[one.id] = max(LEAST, time.perf_counter() - started)
    return found


def learned(
    costs: Mapping[str, float], broken: Mapping[str, Sequence[str]], weights: Mapping[str, float]
) -> Sequence[str]:
    """Return the clauses that catch something, the one that catches most a second first, and so on."""
    catches: dict[str, set[str]] = {one: set() for one in costs}
    for name, red in broken.items():
        for one in costs.keys() & set(red):
            catches[one].add(name)
    judged, order = set[str](), list[str]()
    while any(catches.values()):
        best = max(sorted(costs.keys() - judged), key=lambda one: _rate(one, judged, costs, catches, weights))
        order += (new := with_needs(best, judged, costs))
        judged |= set(new)
        caught = set().union(*(catches[one] for one in new))
        catches = {one: names - caught for one, names in catches.items()}
    return order


def _rate(
    one: str, judged: set[str], costs: Mapping[str, float], catches: Mapping[str, set[str]],
    weights: Mapping[str, float],
) -> float:  # fmt: skip
    """Return how much is caught a second by judging a clause, and what it needs."""
    new = with_needs(one, judged, costs)
    caught = set().union(*(catches[name] for name in new))
    return sum(weights[name] for name in caught) / sum(costs[name] for name in new)


def with_needs(one: str, judged: set[str], costs: Mapping[str, float]) -> Sequence[str]:
    """Return what is judged for a clause: what it needs and is not judged yet, then itself."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        if name in judged or name in found or name not in costs:
            return
        for need in clause(name).needs:
            add(need)
        found[name] = None

    add(one)
    return list(found)


def until_caught(
    order: Sequence[str], costs: Mapping[str, float], broken: Mapping[str, Sequence[str]]
) -> Iterator[float]:
    """Yield for each known mistake what its profile's clauses cost in this order, up to the first that it breaks."""
    places = {profile: {one.id for one in select((), profile)} for profile in PROFILES}
    for red in broken.values():
        home = next((ids for ids in places.values() if not ids.isdisjoint(red)), set[str]())
        spent, judged = 0.0, set[str]()
        for one in order:
            if one not in home or one in judged:
                continue
            new = with_needs(one, judged, costs)
            judged |= set(new)
            spent += sum(costs[name] for name in new)
            if not judged.isdisjoint(red):
                yield spent
                break


if __name__ == "__main__":
    sys.exit(main())
