"""Two tiers of tests: quick ones, which `pytest` runs, and all of them, which `tox -e full` runs.

An exhaustive measurement is a test with many expensive cases. Some of its cases are quick: a fixed sample, and those
that a change concerns. The others are marked `full`, and the quick tier leaves them out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

__all__ = ["CHANGED", "COLLECTED", "ROOT", "Collected", "changed_files", "quick_ones", "sampled"]

ROOT = Path(__file__).resolve().parents[1]
CHANGED = "CONFORM_CHANGED"
"""The environment variable that lists the changed files, one per line, so that all workers choose the same cases."""
MAIN = ("origin/main", "main")
"""Branches that a change is compared with; the first that exists counts."""

Case = TypeVar("Case")


def changed_files() -> frozenset[str]:
    """Return the paths that differ from the main branch, relative to the root; none without git."""
    start = next((base for name in MAIN if (base := _git("merge-base", "HEAD", name).strip())), "HEAD")
    tracked = _git("diff", "--name-only", "--relative", "--no-renames", "-z", start)
    return frozenset(filter(None, f"{tracked}{_git('ls-files', '--others', '--exclude-standard', '-z')}".split("\0")))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def quick_ones(files: Mapping[str, Iterable[Path | str]], always: Collection[str], most: int = 4) -> set[str]:
    """Return the names of the quick cases: those of the fixed sample, and at most `most` that a change concerns.

    `files` gives, for each name, the files and folders that its case depends on more than other cases do. When a change
    concerns more than `most` cases, those at even distances are taken. Raises KeyError if `always` names no case.
    """
    if unknown := set(always) - files.keys():
        raise KeyError(f"the sample names {sorted(unknown)}, and there are no such cases")
    changed = {str(part) for file in _changed() for part in (Path(file), *Path(file).parents)}
    concerned = sorted(name for name, paths in files.items() if not changed.isdisjoint(map(_relative, paths)))
    return {*always, *concerned[:: max(1, -(-len(concerned) // most))]}


def _changed() -> list[str]:
    return os.environ.get(CHANGED, "").splitlines()


def _relative(path: Path | str) -> str:
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else path


def sampled(
    cases: Iterable[Case],
    name: Callable[[Case], str] = str,
    *,
    always: Collection[str],
    files: Callable[[Case], Iterable[Path | str]] = lambda _: (),
    most: int = 4,
) -> list[Any]:
    """Return cases as parameters of a test, named by `name`; all but the quick ones are marked `full`."""
    named = {name(case): case for case in cases}
    quick = quick_ones({key: files(case) for key, case in named.items()}, always, most)
    return [pytest.param(case, id=key, marks=() if key in quick else pytest.mark.full) for key, case in named.items()]


@dataclass(frozen=True)
class Collected:
    """The tests that pytest has found, as `file::function`, by tier."""

    quick: frozenset[str]
    """Those with at least one quick case."""
    full: Mapping[str, str]
    """Those with cases that only the full tier runs, each with the function that it names as its quick guard."""

    @classmethod
    def of(cls, items: Iterable[pytest.Item]) -> Collected:
        """Sort items into tiers."""
        quick: set[str] = set()
        full: dict[str, str] = {}
        for item in items:
            name = item.nodeid.partition("[")[0]
            if mark := item.get_closest_marker("full"):
                full[name] = mark.kwargs.get("guard", "")
            else:
                quick.add(name)
        return cls(frozenset(quick), full)

    def unguarded(self) -> list[str]:
        """Return the tests of the full tier for which the quick tier has neither a case nor a guard."""
        functions = {name.rpartition("::")[2] for name in self.quick}
        return sorted(name for name, guard in self.full.items() if name not in self.quick and guard not in functions)


COLLECTED = pytest.StashKey[Collected]()
"""Where tests/conftest.py keeps what was collected."""
