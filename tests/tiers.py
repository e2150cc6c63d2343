"""Two tiers of tests: quick ones, which `pytest` runs, and all of them, which `tox -e full` runs.

An exhaustive measurement is a test with many expensive cases. Some of its cases are quick: a fixed sample, and those
that a change concerns. The others are marked `full`, and the quick tier leaves them out. So are dear tests, by what
`costs.json` says they take: each names another test of its file as its guard, and is quick where a change concerns it.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from .costs import DEAR, Costs

__all__ = [
    "BASE", "CHANGED", "COLLECTED", "QUICK_ALONE", "ROOT", "Collected", "base", "changed_files", "changed_now",
    "concerned", "dear_ones_leave", "quick_ones", "sampled", "says_what_runs",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
CHANGED = "CONFORM_CHANGED"
"""The environment variable that lists the changed files, one per line, so that all workers choose the same cases."""
QUICK_ALONE = "CONFORM_QUICK_ALONE"
"""The environment variable that says that cases of the full tier need not be collected: none of them could run."""
BASE = "CONFORM_BASE"
"""The environment variable that names a commit to compare with, where the main branch itself is tested."""
MAIN = ("origin/main", "main")
"""Branches that a change is compared with else; the first that exists counts."""

MOST_ALONE = 2.0
"""Seconds that a dear test may take and stay quick because nothing else stands for it."""

Case = TypeVar("Case")


def says_what_runs(config: pytest.Config) -> None:
    """Note whether only quick cases can run: nobody asks for others by the option `-m`, or for a case by its name."""
    named = any("::" in place for place in config.args)
    os.environ[QUICK_ALONE] = "1" if "not full" in config.option.markexpr and not named else ""


def changed_files() -> frozenset[str]:
    """Return the paths that differ from the main branch, relative to the root; none without git."""
    tracked = _git("diff", "--name-only", "--relative", "--no-renames", "-z", base())
    return frozenset(filter(None, f"{tracked}{_git('ls-files', '--others', '--exclude-standard', '-z')}".split("\0")))


def base() -> str:
    """Return the commit that a change is compared with."""
    names = (*filter(None, [os.environ.get(BASE)]), *MAIN)
    return next((found for name in names if (found := _git("merge-base", "HEAD", name).strip())), "HEAD")


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
    near = sorted(name for name, paths in files.items() if concerned(map(_relative, paths)))
    return {*always, *near[:: max(1, -(-len(near) // most))]}


def concerned(paths: Iterable[str]) -> bool:
    """Return whether one of these files, or a file in one of these folders, has changed."""
    return not _changed_places(changed_now()).isdisjoint(paths)


@cache
def _changed_places(files: frozenset[str]) -> frozenset[str]:
    return frozenset(str(part) for file in files for part in (Path(file), *Path(file).parents))


def changed_now() -> frozenset[str]:
    """Return what `changed_files` returned when this run began."""
    return frozenset(os.environ.get(CHANGED, "").splitlines())


def _relative(path: Path | str) -> str:
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else path


def sampled(
    cases: Iterable[Case],
    name: Callable[[Case], str] = str,
    *,
    always: Collection[str],
    files: Callable[[Case], Iterable[Path | str]] = lambda _: (),
    near: Callable[[Case], Iterable[Path | str]] = lambda _: (),
    most: int = 4,
) -> list[Any]:
    """Return cases as parameters of a test, named by `name`; all but the quick ones are marked `full`.

    Those that a change concerns, by `files`, are marked `concerned`: they are quick whatever they take. If there are
    more than `most`, the others run in the full tier, whoseever turn it is there (tests/shares.py); so do those that a
    change concerns by `near`.
    """
    named = {name(case): case for case in cases}
    about = {key: tuple(map(_relative, files(case))) for key, case in named.items()}
    quick = quick_ones(about, always, most)
    marks: dict[str, Any] = {
        key: pytest.mark.full(near=(*about[key], *map(_relative, near(named[key])))) for key in named.keys() - quick
    }
    marks.update(dict.fromkeys(quick.difference(always), pytest.mark.concerned))
    full = sorted(key for key, mark in marks.items() if mark.name == "full")
    unseen = set(full[1:]) if os.environ.get(QUICK_ALONE) else ()  # one is enough to tell that there are some
    return [pytest.param(named[key], id=key, marks=marks.get(key, ())) for key in named if key not in unseen]


def dear_ones_leave(items: Sequence[pytest.Item], costs: Costs, staying: Collection[str]) -> None:
    """Mark dear cases `full`, the dearest first, except those named in `staying` and those that a change concerns.

    What stands alone stays unless it is too dear for that too: the last quick case of a file, of a test whose other
    cases are all `full`, and of a test that others name as their guard.
    """
    needed = _needed(items)
    alone = Counter(name for item in items if _is_quick(item) for name in _held_by(item, needed))
    for item in sorted(items, key=lambda item: (-costs.of(item.nodeid), item.nodeid)):
        cost = costs.of(item.nodeid)
        if cost <= DEAR or item.nodeid in staying or not _is_quick(item) or any(item.iter_markers("concerned")):
            continue
        held = _held_by(item, needed)
        if cost > MOST_ALONE or all(alone[name] > 1 for name in held):
            alone.subtract(held)
            item.add_marker(pytest.mark.full(left=True))
    _name_guards(items)


def _is_quick(item: pytest.Item) -> bool:
    return not any(item.iter_markers("full")) and not any(item.iter_markers("gpu"))


def _needed(items: Iterable[pytest.Item]) -> frozenset[str]:
    """Return the functions that others name as their guard, and those of which only some cases are quick."""
    marks = [(item, mark) for item in items for mark in item.iter_markers("full")]
    return frozenset(mark.kwargs.get("guard") or _function(item) for item, mark in marks)


def _held_by(item: pytest.Item, needed: Collection[str]) -> list[str]:
    """Return the file, and the function if it is needed, of which an item may be the last quick case."""
    return [_file(item.nodeid), *({_function(item)} & set(needed))]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0].rpartition("::")[2]


def _name_guards(items: Sequence[pytest.Item]) -> None:
    """Where a test or its guard has left, name the nearest quick test of the file, or else of the folder."""
    order: dict[str, bool] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        order[name] = order.get(name, False) or _is_quick(item)
    functions = {name.rpartition("::")[2]: False for name in order}
    functions.update({name.rpartition("::")[2]: True for name, quick in order.items() if quick})
    places = {name: number for number, name in enumerate(order)}
    near = _quick_by_place([name for name in order if order[name]])
    for item in items:
        mark, name = item.get_closest_marker("full"), item.nodeid.partition("[")[0]
        if mark is None or order[name] or functions.get(mark.kwargs.get("guard", ""), "guard" in mark.kwargs):
            continue  # a guard of its own; or one that does not exist, which is told (test_tiers.py)
        others = near.get(_file(name)) or near.get(_folder(name), ())
        guard = min(others, key=lambda other: abs(places[other] - places[name]), default="::")
        item.add_marker(pytest.mark.full(guard=guard.rpartition("::")[2]), append=False)


def _quick_by_place(quick: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the tests of each file, and of each folder."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in quick:
        found[_file(name)].append(name)
        found[_folder(name)].append(name)
    return found


def _folder(name: str) -> str:
    return _file(name).rpartition("/")[0]


def _file(name: str) -> str:
    return name.partition("::")[0]


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
