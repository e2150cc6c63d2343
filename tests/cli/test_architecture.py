"""ARCHITECTURE.md: its map names what exists, and omits nothing that a newcomer would look for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = re.compile(r"(?<![\w/>-])[\w-]+\.(?:py|md)\b")
FOLDER = re.compile(r"(?<![\w/.])(?:\w+/)+")


def sections() -> dict[str, str]:
    """Return the lines of the map by the top folder that they are about."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"^## The house\n\n((?: {4}.*\n)+)", text, re.MULTILINE)
    return {part.partition("/")[0]: part for part in re.split(r"^ {4}(?=\w)", drawn, flags=re.MULTILINE)[1:]}


def packages(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/*.py")}


def test_every_file_and_folder_of_the_map_is_there() -> None:
    gone = {
        name
        for top, lines in sections().items()
        for name in [*MODULE.findall(lines), *FOLDER.findall(lines)]
        if not (ROOT / name).exists() and not any((ROOT / top).rglob(name.rstrip("/")))
    }
    assert gone == set()


def test_every_folder_of_code_is_on_the_map() -> None:
    for top, lines in sections().items():
        if top in {"conformance", "reference"}:
            assert {name for name in packages(ROOT / top) if f"{name}/" not in FOLDER.findall(lines)} == set()


def test_every_module_outside_the_judge_is_on_the_map() -> None:
    modules = {path.name for path in (ROOT / "conformance").glob("*.py")} - {"__init__.py"}
    assert modules - set(MODULE.findall(sections()["conformance"])) == set()


def test_tests_mirror_the_tree_or_are_on_the_map() -> None:
    code = set(sections()) - {"tests"}
    mirrored = code | {path.name for top in code for path in (ROOT / top).rglob("*") if path.is_dir()}
    named = {Path(folder).name for folder in FOLDER.findall(sections()["tests"])}
    assert packages(ROOT / "tests") - mirrored - named == set()
