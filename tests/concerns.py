"""Which test files a change concerns, nearest first: `pytest --changed`, and dear tests in the quick tier.

What was recorded (`reached.json`, made by `--record`) counts first: tests that run what a file defines, in any process.
After that come tests that mirror the file, import it, stand in the mirrored folder, import something that imports it,
or speak of it by its name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from conformkit.conformance.defects import defects
from conformkit.spec.clauses import clauses

from . import tiers

__all__ = ["REACHED", "Change", "changed_clauses", "changed_mistakes", "nearest", "reached"]

REACHED = Path(__file__).with_name("reached.json")
_PRODUCT = ("cli", "conformance", "fixtures", "reference", "spec")
_FAR = 4
"""The nearness of files that import the change through others."""


@dataclass(frozen=True)
class Change:
    """A set of changed files, relative to the root."""

    files: frozenset[str]

    def places(self) -> list[tuple[int, str]]:
        """Return test files with their nearness, 0 the nearest, each once."""
        best: dict[str, int] = {}
        for file in sorted(self.files):
            for near, place in nearest(file):
                best[place] = min(near, best.get(place, near))
        return sorted((near, place) for place, near in best.items())

    def families(self) -> list[str]:
        """Return the recorded tests that run what these files define, the most telling first."""
        lists = [reached().get(file, []) for file in sorted(self.files)]
        longest = max(map(len, lists), default=0)
        return list(dict.fromkeys(of[turn] for turn in range(longest) for of in lists if turn < len(of)))


@cache
def reached() -> Mapping[str, list[str]]:
    """Return, for each product file, the tests that run it, the most telling first; nothing where none is recorded."""
    if not REACHED.exists():
        return {}
    read = json.loads(REACHED.read_text(encoding="utf-8"))
    return {file: [read["tests"][number] for number in numbers] for file, numbers in read["files"].items()}


def nearest(file: str) -> Iterator[tuple[int, str]]:
    """Yield nearness and place of test files that one changed file concerns."""
    path = PurePosixPath(file)
    if path.parts[0] == "tests":
        yield from _of_a_test(path)
        return
    if path.parts[0] in _PRODUCT and len(path.parts) > 1:
        yield from _mirroring(path)
    if path.parts[0] in _PRODUCT and path.suffix == ".py":
        yield from _importing(path)
    else:
        yield from _by_name(path)


def _of_a_test(path: PurePosixPath) -> Iterator[tuple[int, str]]:
    if path.name.startswith("test_") and path.suffix == ".py":
        yield 0, str(path)
    else:  # what tests share: the tests next to it, or those of the nearest folder above
        folder = next((up for up in path.parents if any((tiers.ROOT / up).glob("test_*.py"))), PurePosixPath("tests"))
        yield from ((1, place) for place in sorted(_texts()) if PurePosixPath(place).parent == folder)


def _mirroring(path: PurePosixPath) -> Iterator[tuple[int, str]]:
    given = PurePosixPath("tests", *path.parts[1 if path.parts[0] == "conformance" else 0 : -1])
    mirror = next(up for up in (given, *given.parents) if (tiers.ROOT / up).is_dir())
    own = {f"test_{path.stem}", f"test_{path.stem.strip('_')}", f"test_{path.parent.name}"}
    for place in map(PurePosixPath, _texts()):
        if place.stem in own and place.is_relative_to(mirror):
            yield 0, str(place)
        elif place.parent == mirror != PurePosixPath("tests"):
            yield 2, str(place)


def _importing(path: PurePosixPath) -> Iterator[tuple[int, str]]:
    for distance, modules in _importers(_module(path)):
        yield from ((distance, place) for place, names in _imported_by_tests().items() if not modules.isdisjoint(names))


def _importers(module: str) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield this module, then those that import it, and so on."""
    seen = edge = frozenset({module})
    yield 1, edge
    for distance in range(_FAR - 1, _FAR + 2):
        edge = frozenset(name for name, imports in _imports().items() if not edge.isdisjoint(imports)) - seen
        seen |= edge
        yield distance, edge


def _by_name(path: PurePosixPath) -> Iterator[tuple[int, str]]:
    pattern = re.compile(rf"\b{re.escape(path.stem)}\b")
    for place, text in _texts().items():
        if path.name in text:
            yield 0, place
        elif len(path.stem) > 3 and pattern.search(text):
            yield 2, place


def _module(path: PurePosixPath) -> str:
    parts = path.with_suffix("").parts
    return ".".join(("conformkit", *(parts[:-1] if parts[-1] == "__init__" else parts)))


@cache
def _texts() -> Mapping[str, str]:
    """Return the test files, by place."""
    found = (path for path in (tiers.ROOT / "tests").rglob("test_*.py") if not _is_data(path))
    return {path.relative_to(tiers.ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(found)}


def _is_data(path: Path) -> bool:
    """Whether a file belongs to a package that tests judge: pytest would not find it."""
    return not (path.parent / "__init__.py").exists() and "right_wild" in path.parts


@cache
def _imported_by_tests() -> Mapping[str, frozenset[str]]:
    return {place: frozenset(_imported(text)) for place, text in _texts().items()}


@cache
def _imports() -> Mapping[str, frozenset[str]]:
    """Return the imports of each product module."""
    found = {}
    for part in _PRODUCT:
        for path in (tiers.ROOT / part).rglob("*.py"):
            place = PurePosixPath(path.relative_to(tiers.ROOT).as_posix())
            found[_module(place)] = frozenset(_imported(path.read_text(encoding="utf-8")))
    return found


def _imported(text: str) -> Iterator[str]:
    for match in re.finditer(
        r"^\s*(?:from (conformkit[\w.]*) import ([^\n]+)|import (conformkit[\w.]*))", text, re.MULTILINE
    ):
        package, names, plain = match.groups()
        yield package or plain
        yield from (f"{package}.{name.strip()}" for name in (names or "").split(",") if name.strip().isidentifier())


def changed_mistakes(files: Iterable[str]) -> frozenset[str]:
    """Return the ids of the known mistakes whose files changed."""
    stems = {PurePosixPath(file).stem for file in files if file.startswith("conformance/defects/")}
    return frozenset(stems & defects().keys()) if stems else frozenset()  # reading all of them takes two seconds


def changed_clauses(lines: Mapping[str, Iterable[int]]) -> frozenset[str]:
    """Return the ids of the clauses whose prose or test holds a changed line, given by file."""
    found: set[str] = set()
    for file, numbers in lines.items():
        path = tiers.ROOT / file
        if path.exists() and re.fullmatch(r"spec/\w+\.md|conformance/suite/test_\w+\.py", file):
            owners = dict(_tested(path) if path.suffix == ".py" else _written(path))
            found |= {owners[number] for number in numbers if number in owners}
    return frozenset(found & clauses().keys())


def _written(path: Path) -> Iterator[tuple[int, str]]:
    owner = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        owner = line[4:].strip() if line.startswith("### ") else "" if line.startswith("#") else owner
        yield number, owner


def _tested(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "clause":
                owner = ast.literal_eval(decorator.args[0])
                yield from ((number, owner) for number in range(decorator.lineno, (node.end_lineno or 0) + 1))
