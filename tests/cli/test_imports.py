"""Imports, read from the sources: those inside functions and those only for types count like all others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "fixtures", "reference", "conformance", "cli")
MOST_LOOSE = 4


def modules(root: Path) -> dict[str, Path]:
    """Return the product's modules by the names that they are imported by."""
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return {_name(path.relative_to(root)): path for path in files}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(("conformkit", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imports(name: str, path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules that one imports: of `from package import module`, the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for candidates in _candidates(node, name, package=path.name == "__init__.py"):
            found |= {next((candidate for candidate in candidates if candidate in known), name)}
    return found - {name}


def _candidates(node: ast.AST, importer: str, *, package: bool) -> Iterator[list[str]]:
    """Yield, for each imported name, the module that it may be, else the one that defines it."""
    if isinstance(node, ast.Import):
        yield from ([alias.name] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = importer.split(".")[: None if package and node.level == 1 else (-node.level + package) or None]
        module = ".".join([*(above if node.level else []), *([node.module] if node.module else [])])
        yield from ([f"{module}.{alias.name}", module] for alias in node.names)


def circle(root: Path) -> list[str]:
    """Return the modules of one import cycle, nothing if there is none."""
    known = modules(root)
    try:
        TopologicalSorter({name: imports(name, path, known) for name, path in known.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_cycle() -> None:
    assert circle(ROOT) == []


@pytest.mark.parametrize(
    "source",
    [
        "from conformkit.spec.clauses import Clause",
        "def late():\n    from conformkit.spec import clauses",
        "if TYPE_CHECKING:\n    import conformkit.spec.clauses",
        "from .clauses import Clause",
        "from . import clauses",
    ],
    ids=["plain", "lazy", "for-types", "relative", "relative-module"],
)
def test_a_cycle_is_found_in_every_form(tmp_path: Path, source: str) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "clauses.py").write_text("from conformkit.spec.masks import mask\n", encoding="utf-8")
    (tmp_path / "spec" / "masks.py").write_text(source + "\n", encoding="utf-8")
    assert set(circle(tmp_path)) == {"conformkit.spec.clauses", "conformkit.spec.masks"}


def test_few_modules_of_conformance_stand_on_no_floor() -> None:
    loose = [path.name for path in (ROOT / "conformance").glob("*.py")]
    assert len(loose) <= MOST_LOOSE, loose
