"""Two tiers of tests: quick ones, which `pytest` runs, and all of them, which `tox -e full` runs.

An exhaustive measurement is a test with many expensive cases. Some of its cases are quick: a fixed sample, and the cases
that a change concerns. The others are marked `full`, and the quick tier leaves them out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

__all__ = ["CHANGED", "ROOT", "changed_files", "quick_ones", "sampled"]

ROOT = Path(__file__).resolve().parents[1]
CHANGED = "CONFORM_CHANGED"
"""The environment variable that lists the changed files, one a line, so that all workers choose the same cases."""
MAIN = ("origin/main", "main")
"""Branches that a change is compared with; the first that exists counts."""

Case = TypeVar("Case")


def changed_files() -> frozenset[str]:
    """Return the paths that differ from the main branch, relative to the root; none where there is no git."""
    start = next((base for name in MAIN if (base := _git("merge-base", "HEAD", name).strip())), "HEAD")
    tracked = _git("diff", "--name-only", "--relative", "--no-renames", "-z", start)
    return frozenset(filter(None, f"{tracked}{_git('ls-files', '--others', '--exclude-standard', '-z')}".split("\0")))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


@cache
def _changed() -> frozenset[str]:
    return frozenset(os.environ.get(CHANGED, "").splitlines())


def quick_ones(files: Mapping[str, Iterable[Path | str]], always: Collection[str], most: int = 4) -> set[str]:
    """Return the names of the quick cases: those of the fixed sample, and at most `most` that a change concerns.

    `files` gives, for each name, the files and folders that its case depends on more than other cases do. Where a change
    concerns more than `most` cases, they are taken at even distances.
    """
    if unknown := set(always) - files.keys():
        raise KeyError(f"the sample names {sorted(unknown)}, and there are no such cases")
    concerned = sorted(name for name, paths in files.items() if _concerned(paths))
    return {*always, *concerned[:: -(-len(concerned) // most) or 1]}


def _concerned(paths: Iterable[Path | str]) -> bool:
    places = [str(path.relative_to(ROOT)) if isinstance(path, Path) else path for path in paths]
    return any(file == place or file.startswith(f"{place}/") for file in _changed() for place in places)


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
    return [
        pytest.param(case, id=key, marks=() if key in quick else pytest.mark.full) for key, case in named.items()
    ]
