"""The results of correct and wrong models in the lessons of the training clauses: the figures behind their bounds.

python benchmarks/learning.py [--seeds N] [--impl NAME|PATH] [--defect ID …]

Without a defect, the implementation is trained as it is; with one, the reference with that mistake. For each
lesson: the steps that it took and the excess over the source's entropy in nats, from the smallest to the largest of the
seeds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.evidence.learning import Lesson, learned
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite import test_learning, test_training
from conformkit.spec.variants import CANONICAL


def lessons() -> list[Lesson]:
    """Return every lesson of the suite."""
    found = [*vars(test_training).values(), *vars(test_learning).values()]
    return [lesson for lesson in found if isinstance(lesson, Lesson)]


def measured(model: Subject, seeds: int, names: list[str]) -> Iterator[str]:
    """Yield a line for each lesson."""
    for lesson in lessons():
        if names and not any(name in lesson.name for name in names):
            continue
        found = [learned(model, lesson, seed) for seed in range(seeds)]
        steps = sorted(outcome.steps for outcome in found)
        excess = sorted(outcome.excess for outcome in found)
        gain = max(float(outcome.gains.sum()) for outcome in found)
        middle = len(found) // 2
        yield (
            f"  {lesson.name:<24} steps {steps[0]:>4} {steps[middle]:>4} {steps[-1]:>4}   excess "
            f"{excess[0]:7.3f} {excess[middle]:7.3f} {excess[-1]:7.3f}   most gained {gain:9.1f}"
        )


def main() -> None:
    """Print a table for the implementation, or for each defect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--impl", default="conformkit.reference")
    parser.add_argument("--defect", nargs="*", default=[])
    parser.add_argument("--lesson", nargs="*", default=[], help="parts of their names; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        targets = {options.impl: options.impl} if not options.defect else {}
        for name in options.defect:
            patches = defects()[name].patches
            targets[name] = str(write_reference(Path(folder) / name.replace("-", "_"), patches, CANONICAL))
        for name, impl in targets.items():
            print(name, flush=True)
            with opened(RunRequest(impl=impl, profile="lm")) as (implementation, _):
                for line in measured(implementation.subject("TinyTransformerLM"), options.seeds, options.lesson):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
