"""What tests cost, as recorded: dear ones wait for a change that concerns them, and parts of a run take equally long.

`pytest --record-costs` measures all that it runs, in processor time (tests/spent.py), and writes `costs.json`; each run
says which tests have grown since. Only relations matter: the whole run is compared first, so a slower machine is no
growth.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

__all__ = ["DEAR", "FILE", "Costs", "Part", "Watch", "family", "longest_first", "numbers", "part", "recorded"]

FILE = Path(__file__).with_name("costs.json")
DEAR = 0.3
"""Seconds; a case that takes longer is dear."""
_USUAL = 0.015
_SMALL = 2.0
"""Nobody is told how families grow that take less together; they have no entry, unless each case takes long."""
_NOTED = 0.1
"""Seconds; families whose cases take as long have an entry: many of them would fill the budget of `--changed`."""
_GROWN = 1.5
LONG = 5.0
"""Seconds; cases that take longer begin first, or one process runs the last one while the others have nothing to do."""
_FEW = 10
"""Of fewer families nobody can say how fast the machine is."""


def family(test: str) -> str:
    """Return the name of a test without its case."""
    return test.partition("[")[0]


@dataclass(frozen=True)
class Costs:
    """Seconds on an idle machine."""

    families: Mapping[str, float]
    """By family, the mean of its cases that are not dear."""
    dear: Mapping[str, float]
    """By test, where one case takes more than `DEAR`."""

    def of(self, test: str) -> float:
        """Return what a test is expected to take."""
        return self.dear.get(test, self.families.get(family(test), _USUAL))

    def knows(self, test: str) -> bool:
        """Return whether a test, or the family of it, is recorded."""
        return test in self.dear or family(test) in self.families

    def grown(self, measured: Mapping[str, float]) -> list[str]:
        """Return a line for each family that takes longer than recorded, by more than the whole run does."""
        wanted, found = Counter[str](), Counter[str]()
        for test, seconds in measured.items():
            wanted[family(test)] += self.of(test)
            found[family(test)] += seconds
        known = [name for name in found if name in {*self.families, *map(family, self.dear)}]
        if len(known) < _FEW:
            return []
        pace = max(1.0, median(found[name] / wanted[name] for name in known))
        lines = [
            (found[name] - wanted[name] * pace, f"{name}: {found[name] / pace:.1f} s, recorded {wanted[name]:.1f} s")
            for name in found
            if found[name] > _SMALL * pace and found[name] > wanted[name] * pace * _GROWN
        ]
        return [line for _, line in sorted(lines, reverse=True)]

    def with_(self, measured: Mapping[str, float], *, quick_alone: bool = False) -> Costs:
        """Return these costs, measured families anew; their other dear cases stay if the quick ones ran alone."""
        cases: dict[str, list[float]] = {}
        for test, seconds in measured.items():
            cases.setdefault(family(test), []).append(seconds)
        cheap = {name: [cost for cost in of if cost <= DEAR] for name, of in cases.items()}
        means = {
            name: round(sum(of) / len(of), 3)
            for name, of in cheap.items()
            if of and sum(of) >= min(_SMALL, _NOTED * len(of))
        }
        dear = {test: round(seconds, 1) for test, seconds in measured.items() if seconds > DEAR}

        def stays(test: str) -> bool:
            return test not in measured if quick_alone else family(test) not in cases

        return Costs(
            {**{name: mean for name, mean in self.families.items() if name not in cases}, **means},
            {**{test: cost for test, cost in self.dear.items() if stays(test)}, **dear},
        )

    def write(self) -> None:
        """Write them for the next runs."""
        text = {"families": dict(sorted(self.families.items())), "dear": dict(sorted(self.dear.items()))}
        FILE.write_text(json.dumps(text, indent=0) + "\n", encoding="utf-8")


def recorded() -> Costs:
    """Return what is recorded."""
    read = json.loads(FILE.read_text(encoding="utf-8"))
    return Costs(read["families"], read["dear"])


def part(tests: Sequence[str], costs: Costs, chosen: str) -> frozenset[str]:
    """Return the tests of part 2/5: each goes to the part that is cheapest so far, the dearest first.

    A family of cheap cases is not torn apart: what its cases share is made once. Raises UsageError.
    """
    number, count = numbers("--part", chosen)
    weights = Counter[tuple[str, str]]()
    units: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        unit = (family(test), test if costs.of(test) > DEAR / 10 else "")
        weights[unit] += costs.of(test)
        units.setdefault(unit, []).append(test)
    loads = [0.0] * count
    kept: list[str] = []
    for unit, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        least = loads.index(min(loads))
        loads[least] += weight
        kept += units[unit] if least == number - 1 else []
    return frozenset(kept)


def longest_first(tests: Sequence[str], costs: Costs, processes: int) -> list[int]:
    """Return the order in which tests run, as numbers: each process begins with its part of the longest ones.

    pytest-xdist gives each process as many tests that follow each other, and moves some when one has no more.
    """
    long = sorted((n for n, test in enumerate(tests) if costs.of(test) > LONG), key=lambda n: -costs.of(tests[n]))
    others = sorted(set(range(len(tests))) - set(long))
    order: list[int] = []
    for number in range(processes):
        own = long[number::processes]
        end = (number + 1) * len(tests) // processes - number * len(tests) // processes - len(own)
        order += [*own, *others[:end]]
        others = others[max(end, 0) :]
    return order + others


def numbers(option: str, chosen: str) -> tuple[int, int]:
    """Return the numbers of a share written as 2/5. Raises UsageError."""
    number, _, count = chosen.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 0 < int(number) <= int(count)):
        raise pytest.UsageError(f"{option}: {chosen!r} is none; write the second of five parts as 2/5")
    return int(number), int(count)


@dataclass(frozen=True)
class Part:
    """The plugin that keeps one part of what is left of a run."""

    chosen: str

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the other parts."""
        ours = part([item.nodeid for item in items], recorded(), self.chosen)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ours])
        items[:] = [item for item in items if item.nodeid in ours]


@dataclass(eq=False)  # plugins are kept in sets
class Watch:
    """The plugin that measures, in the process that reports."""

    write: bool
    quick_alone: bool = False
    _measured: Counter[str] = field(default_factory=Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a test took, with its fixtures."""
        self._measured[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which families have grown, or record all."""
        costs = recorded()
        if self.write:
            costs.with_(self._measured, quick_alone=self.quick_alone).write()
            terminalreporter.section("costs")
            terminalreporter.line(f"what {len(self._measured)} tests take is recorded in {FILE.name}")
        elif grown := costs.grown(self._measured):
            terminalreporter.section("dearer than recorded")
            _show(terminalreporter, grown)


def _show(reporter: Any, lines: Iterable[str]) -> None:
    shown = list(lines)
    for line in shown[:20]:
        reporter.line(line)
    if shown[20:]:
        reporter.line(f"and {len(shown) - 20} more")
