"""ARCHITECTURE.md: its map names what exists, and omits nothing that a newcomer would look for."""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from pathlib import Path

from conformkit.conformance.binding import config
from conformkit.spec import clauses, components, profiles

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


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def test_the_worker_can_be_asked_what_the_page_says_and_nothing_else() -> None:
    """Catches a new verb of the wire that whoever judges the trust boundary by this page never hears of."""
    (verbs,) = re.findall(r"`(load describe [\w\s]+)`", read("ARCHITECTURE.md"))
    asked = re.findall(r'^        "(\w+)": \(', read("conformance", "driver", "worker", "operations.py"), re.MULTILINE)
    assert sorted(verbs.split()) == sorted(asked)


def test_each_framework_has_the_file_that_the_page_promises() -> None:
    """Catches a framework that a file can declare and the worker does not have."""
    worker = read("conformance", "driver", "worker", "loading.py")
    for name in config.FRAMEWORKS:
        module = f"conformkit.conformance.driver.worker.frameworks.{name} import"
        assert (ROOT / "conformance" / "driver" / "worker" / "frameworks" / f"{name}.py").exists()
        assert module in worker


def test_assertions_know_no_component() -> None:
    """Catches a comparison that treats one component otherwise than the others."""
    names = "|".join((*components.COMPONENTS, "spec.component"))
    for path in (ROOT / "conformance" / "assertions").rglob("*.py"):
        assert not re.findall(rf"\b(?:{names})", path.read_text(encoding="utf-8")), path


def test_what_judges_names_no_clause() -> None:
    """Catches a list of clauses in the judge, about which whoever adds one would have to know."""
    known = {name for profile in profiles.PROFILES for name in clauses.clauses_of(profile)}
    apart = {"apps/grade/parts.py", "discovery/checking.py", "discovery/completing.py"}  # students' parts; doubts
    home = ROOT / "conformance"
    for path in home.rglob("*.py"):
        if path.relative_to(home).parts[0] in {"suite", "evidence"} or path.relative_to(home).as_posix() in apart:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in told)
        named = {
            word for text in texts if isinstance(text, str) for word in re.findall(r"[A-Z0-9]+(?:-[A-Z0-9]+)+", text)
        }
        assert named & known == set(), path


def test_each_dependency_has_its_reason_on_the_page() -> None:
    """Catches a package that is needed and that nobody gave a reason for, or one that is explained and gone."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = [
        project["optional-dependencies"][name] for name in ("grade", "report", "digits", "translation", "docs", "mcp")
    ]
    wanted = {one.partition(">=")[0] for one in [*project["dependencies"], *itertools.chain(*extras)]}
    table = read("ARCHITECTURE.md").partition("## Dependencies")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|(]+)", table, re.MULTILINE)[2:]
    told = {name.strip() for row in rows for name in row.split(",")}
    assert told == wanted


def test_the_newest_version_of_the_changes_is_the_one_that_is_packed() -> None:
    """Catches a release whose changes have no date, or are still called unreleased, or have another number."""
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    newest = next(
        found for found in re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE) if found != "Unreleased"
    )
    assert re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)", newest)
    assert f"version: {version}\n" in read("CITATION.cff")
