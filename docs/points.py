"""What known mistakes cost under each policy that needs no file: the table in grading.md.

python docs/points.py            # judges the reference with each mistake, and writes the table anew
    python docs/points.py sdpa-no-scale   # only these rows
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.apps.grade.policy_file import READY, ready
from conformkit.conformance.apps.grade.scoring import score
from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import worker_factory
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.probing.known import Known
from conformkit.spec.variants import CANONICAL

PAGE = Path(__file__).with_name("grading.md")
BEGIN, END = "<!-- points: made by docs/points.py -->", "<!-- /points -->"
FIRST = (
    "sdpa-no-scale", "sdpa-scale-dk", "sdpa-naive-softmax", "sdpa-softmax-queries", "sdpa-softmax-dim1",
    "sdpa-always-causal", "sdpa-transpose-12", "sdpa-dropout-eval", "mask-polarity",
    "mask-after-softmax",
)  # fmt: skip
"""Common mistakes in attention; more of them, and of others, follow."""


def mistakes() -> list[str]:
    """Return the ids: those in attention, and the first common ones in each other document of the core."""
    others = ("masks", "multi_head_attention", "block", "model", "generation", "positional_encoding")
    found = list(FIRST)
    for stem in others:
        common = (d for d in defects().values() if d.stem == stem and d.common == "often" and not d.choices)
        found += [d.id for d in common if not d.id.endswith("-bias")][:4]  # a run tells biases in one line
    return list(dict.fromkeys(found))[:30]


def in_attention(name: str) -> bool:
    """Whether a mistake is one in attention: what these cost calibrates the default policy."""
    return defects()[name].stem in {"attention", "masks"}


def costs(names: Sequence[str], policies: Sequence[Policy]) -> Iterator[tuple[str, list[float]]]:
    """Yield each mistake with the points that it costs by each policy."""
    warm = SharedFactory(worker_factory(1, torch=True))
    try:
        with witness([], None, variant=CANONICAL, warm=warm, profile="core", tries=48) as judge:
            known = judge.implementation.learned()
        for name in names:
            yield name, [100 - points for points in _points(name, policies, warm, known)]
    finally:
        warm.close()


def _points(name: str, policies: Sequence[Policy], warm: SharedFactory, known: Mapping[str, Known]) -> list[float]:
    chosen = [defects()[name]]
    try:
        with witness(chosen, None, variant=CANONICAL, warm=warm, profile="core", tries=48, known=known) as judge:
            results = [judge.result(wanted) for wanted in policies[0].wanted()]
    except LoadFailure:
        return [0.0] * len(policies)
    return points(results, policies)


def points(results: Sequence[Result], policies: Sequence[Policy]) -> list[float]:
    """Return what these results are worth by each policy, of 100 points."""
    report = Report("", "", "torch", results=results, complete=True)
    scores = [score(report, policy, lambda _: True) for policy in policies]
    return [100 * found.points / found.max_points for found in scores]


def table(found: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return the lines of the table: what is wrong, and what it costs of 100 points."""
    lines = [f"| known mistake | {' | '.join(READY)} |", f"| --- | {' | '.join('---:' for _ in READY)} |"]
    for name, lost in found:
        lines.append(f"| {defects()[name].title} (`{name}`) | {' | '.join(f'{value:.0f}' for value in lost)} |")
    common = [lost for name, lost in found if in_attention(name)]
    middle = [median(values) for values in zip(*common, strict=True)]
    lines.append(f"| **median of those in attention** | {' | '.join(f'**{value:.0f}**' for value in middle)} |")
    return "\n".join(lines)


def rows(page: str) -> dict[str, list[float]]:
    """Return what the table says, by mistake."""
    own = page.partition(BEGIN)[2].partition(END)[0]
    found = re.findall(r"\(`([a-z0-9-]+)`\) \| ([0-9 |]+) \|$", own, re.MULTILINE)
    return {name: [float(value) for value in values.split("|")] for name, values in found}


def main(names: Sequence[str] = ()) -> None:
    """Write the table, or some of its rows."""
    new: dict[str, list[float]] = {}
    for name, lost in costs(names or mistakes(), [ready(name) for name in READY]):
        new[name] = lost
        print(name, *(f"{value:.1f}" for value in lost), flush=True)
    kept = rows(PAGE.read_text(encoding="utf-8")) if names else {}
    found = [(name, (kept | new)[name]) for name in mistakes() if name in kept | new]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
