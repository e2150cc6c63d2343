"""Compare this kit with another judge on the same mistakes: how many each catches, and the cost of a check.

python benchmarks/peers [--every N] [--rounds N]            needs the extra `benchmarks` (torch-judge)

A mistake is a defect of conformance/defects. It is used in a task of torch-judge if the files that it changes are part
of the task's submission, and if it is visible there (visible.py): nothing is chosen by hand. The
variant is the defect's own, with the choices of the task. torch-judge catches a mistake if one of the task's
tests fails; conform does if a binding clause of the component, or one for all components, fails.
A mistake that cannot be imported is caught by both.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from tasks import TASKS, Task
from torch_judge import engine
from visible import shows

from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause, Level, clauses
from conformkit.spec.variants import CANONICAL, Variant

HANGS = 60.0
"""Seconds after which a submission is considered to hang."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mistake in a task."""

    task: str
    defect: str
    theirs: bool
    ours: bool


def main() -> int:
    """Print the tables; return 1 when a judge refuses the reference without a mistake."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--every", type=int, default=4, help="take each N-th mistake")
    parser.add_argument("--rounds", type=int, default=5, help="of timing")
    parser.add_argument("--theirs-once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.theirs_once:
        return judged_once_by_torch_judge()
    with laboratory() as laboratory_:
        refused = list(laboratory_.refused())
        if refused:
            print("the reference itself is refused:", *refused, sep="\n  ")
            return 1
        chosen = candidates()[:: options.every]
        print("\n".join(kill_table(list(laboratory_.outcomes(chosen)))), "\n", flush=True)
    print("\n".join(cost_table(options.rounds)))
    return 0


class Laboratory:
    """Writes references with mistakes, and lets both judge them."""

    def __init__(self, folder: Path, warm: WorkerFactory) -> None:
        self._folder, self._warm = folder, warm
        self._count = 0
        self._ours: dict[tuple[str, str, Variant], bool] = {}

    def refused(self) -> Iterator[str]:
        """Yield each judge and task in which the reference without a mistake does not pass."""
        for task in TASKS:
            variant = CANONICAL.but(**task.variant)
            right = self._written("right", None, variant)
            if not forked(lambda task=task, right=right: passes(task, imported(right))):
                yield f"torch-judge: {task.id}"
            if self._caught(right, task.component):
                yield f"conform: {task.component} as in {task.id}"

    def outcomes(self, chosen: Sequence[Defect]) -> Iterator[Outcome]:
        """Yield the outcome of each mistake in each task in which it is used."""
        for number, defect in enumerate(chosen):
            if sys.stderr.isatty():
                print(f"\r{number}/{len(chosen)} {defect.id}\033[K", end="\r", file=sys.stderr, flush=True)
            for task in within(defect):
                yield from self._outcome(defect, task)

    def _outcome(self, defect: Defect, task: Task) -> Iterator[Outcome]:
        variant = defect.variant.but(**task.variant)
        right, mistaken = self._written("right", None, variant), self._written("mistaken", defect, variant)
        if not forked(lambda: shows(task, imported(right), imported(mistaken)), hanging=True):
            return
        passed = forked(lambda: passes(task, imported(mistaken)))
        key = (defect.id, task.component, variant)
        if key not in self._ours:
            self._ours[key] = self._caught(mistaken, task.component)
        yield Outcome(task.id, defect.id, not passed, self._ours[key])

    def _written(self, name: str, defect: Defect | None, variant: Variant) -> Path:
        self._count += 1
        return write_reference(self._folder / str(self._count) / name, defect.patches if defect else (), variant)

    def _caught(self, package: Path, component: str) -> bool:
        """Whether a binding clause about the component fails."""
        try:
            with opened(RunRequest(impl=str(package)), self._warm, components={component}) as (implementation, _):
                judge = Judge(implementation, tests())
                return any(judge.result(clause.id).verdict.red for clause in binding(component))
        except LoadFailure:
            return True


@contextmanager
def laboratory() -> Iterator[Laboratory]:
    """Create a folder for copies, and a warm process."""
    warm = worker_factory(1, torch=True)
    try:
        with tempfile.TemporaryDirectory(prefix="conform-") as folder:
            yield Laboratory(Path(folder), warm)
    finally:
        warm.close()


def within(defect: Defect) -> list[Task]:
    """Return the tasks whose submissions contain the files that the mistake changes."""
    changed = {patch.file for patch in defect.patches}
    return [task for task in TASKS if changed <= task.files]


def candidates() -> list[Defect]:
    """Return the mistakes that can be used in some task."""
    return [defect for defect in defects().values() if within(defect)]


def binding(component: str) -> list[Clause]:
    """Return the binding clauses about a component, in the order of the law."""
    about = (clause for clause in clauses().values() if clause.component in {component, "all"})
    return [clause for clause in about if clause.level is Level.MUST and clause.profile == "core"]


def imported(package: Path) -> ModuleType:
    """Import a package by its folder."""
    sys.path.insert(0, str(package.parent))
    return importlib.import_module(package.name)


def passes(task: Task, package: ModuleType) -> bool:
    """Let torch-judge check a submission as in a notebook, whose names it looks up."""
    said = io.StringIO()
    name = engine.get_task(task.id)["function_name"]
    with (
        mock.patch.object(engine, "_get_user_namespace", return_value={name: task.submission(package)}),
        mock.patch.multiple(engine, mark_solved=mock.DEFAULT, mark_attempted=mock.DEFAULT),
        contextlib.redirect_stdout(said),
    ):
        engine.check(task.id)
    return "tests passed! (" in said.getvalue()


def forked(question: Callable[[], bool], *, hanging: bool = False) -> bool:
    """Answer a question in a separate process; False if it raises or ends early, `hanging` if it never ends.

    The fork is safe: this process has imported torch and computed nothing with it.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(question, sender))
    process.start()
    sender.close()
    try:
        return bool(receiver.recv()) if receiver.poll(HANGS) else hanging
    except EOFError:
        return hanging
    finally:
        process.kill()
        process.join()


def _answer(question: Callable[[], bool], sender: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stderr(io.StringIO()):
        sender.send(question())


def kill_table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one row per task, and one in which each mistake counts once, caught if one of its tasks catches it."""
    by_task: dict[str, list[Outcome]] = defaultdict(list)
    by_mistake: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_task[outcome.task].append(outcome)
        by_mistake[outcome.defect].append(outcome)
    rows = [("task", "mistakes", "caught by torch-judge", "caught by conform"), ("---", "---:", "---:", "---:")]
    for task in TASKS:
        own = by_task[task.id]
        rows.append((task.id, str(len(own)), *shares([o.theirs for o in own], [o.ours for o in own])))
    theirs = [any(o.theirs for o in own) for own in by_mistake.values()]
    ours = [any(o.ours for o in own) for own in by_mistake.values()]
    rows.append(("any of them", str(len(by_mistake)), *shares(theirs, ours)))
    missed = [f"{o.defect} in {o.task}" for o in outcomes if not o.ours]
    return [*(f"| {' | '.join(row)} |" for row in rows), "", f"Not caught by conform: {', '.join(missed) or 'none'}."]


def shares(*groups: Sequence[bool]) -> tuple[str, ...]:
    """Return counts with their percentages."""
    return tuple(f"{sum(group)} ({sum(group) / max(len(group), 1):.0%})" for group in groups)


def cost_table(rounds: int) -> list[str]:
    """Measure both commands and a bare `import torch`, in turns; return the cost of a check, including start-up."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        components = dict.fromkeys(task.component for task in TASKS)
        only = [part for name in components for clause in own(name) for part in ("--only", clause.id)]
        ours = [
            "-m",
            "conformkit.cli",
            "run",
            "--impl",
            "conformkit.reference",
            "--quiet",
            "--json",
            str(report),
            *only,
        ]
        commands = {
            "torch": ["-c", "import torch"],
            "theirs": [str(Path(__file__).parent), "--theirs-once"],
            "ours": ours,
        }
        seconds: dict[str, list[float]] = defaultdict(list)
        for number in range(rounds + 1):
            for name, command in commands.items():
                took = timed(command)
                if number:  # the first round reads and compiles files
                    seconds[name].append(took)
        ledger = json.loads(report.read_text(encoding="utf-8"))["ledger"]
    torch_seconds = statistics.median(seconds["torch"])
    checks = {"theirs": sum(len(engine.get_task(task.id)["tests"]) for task in TASKS), "ours": ledger["pass"]}
    lines = ["| judge | checks | run ÷ `import torch` | a check ÷ `import torch` |", "| --- | ---: | ---: | ---: |"]
    for name, title in (("theirs", "torch-judge"), ("ours", "conform")):
        ratio = statistics.median(seconds[name]) / torch_seconds
        cells = (title, str(checks[name]), f"{ratio:.2f}", f"{ratio / checks[name]:.4f}")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", f"`import torch` took {torch_seconds:.2f} s; medians of {rounds} rounds."]


def own(component: str) -> list[Clause]:
    """Return the clauses about this component only."""
    return [clause for clause in binding(component) if clause.component == component]


def timed(command: Sequence[str]) -> float:
    """Return the seconds of a command of this interpreter."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def judged_once_by_torch_judge() -> int:
    """Let torch-judge check the reference in this process, as in a notebook; gated if the task requires that."""
    plain = importlib.import_module("conformkit.reference")
    with tempfile.TemporaryDirectory() as folder:
        gated = imported(write_reference(Path(folder) / "gated", (), CANONICAL.but(gated=True, activation="silu")))
        return int(not all(passes(task, gated if task.variant.get("gated") else plain) for task in TASKS))


if __name__ == "__main__":
    sys.exit(main())
