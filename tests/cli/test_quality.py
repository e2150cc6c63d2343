"""The figures of benchmarks/figures.toml and docs/quality.md match the repository; each names an existing command."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [line for line in PAGE.splitlines() if line.startswith("|")]
HEADING, _, *ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in LINES]
MOST_ROWS = 16


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


FIGURES = script(ROOT / "benchmarks" / "quality.py").figures()


def figure(words):
    (found,) = [one["found"] for one in FIGURES if words in one["what"]]
    return found


@pytest.fixture(scope="module")
def counted():
    benchmark = script(ROOT / "benchmarks" / "defects.py")
    return benchmark.figures(benchmark.record("defects"), benchmark.record("spec"))


def test_the_page_is_what_its_command_writes():
    """Catches a figure that is changed by hand in one of the two places."""
    assert script(ROOT / "benchmarks" / "quality.py").page() + "\n" == PAGE


def test_the_known_mistakes_are_counted(counted):
    assert figure("known mistakes, each") == f"{counted.known:,}"
    assert figure("break a binding clause") == f"{counted.percent} %"
    at_least = re.search(r"More than ([\d,]+) known mistakes", README)[1]
    assert counted.known > int(at_least.replace(",", ""))


def test_red_lines_are_counted(counted):
    wanted = f"{counted.median} in the median, at most {counted.ninth_decile} for nine in ten"
    assert figure("red lines that a known mistake gives") == wanted


def test_figures_are_made_of_what_was_red():
    figures = script(ROOT / "benchmarks" / "defects.py").figures
    clauses = [
        {"id": f"A-{n}", "level": level, "document": "a", "profile": "core"} for n, level in enumerate(["MUST", "MAY"])
    ]
    clauses.append({"id": "B-0", "level": "MUST", "document": "b", "profile": "lm"})
    defects = [{"stem": stem, "red": red} for stem, red in [("a", ["A-0", "A-1"]), ("a", ["A-1"]), ("b", ["B-0"])]]
    found = figures(defects, clauses)
    assert (found.known, found.binding, found.percent, found.core) == (3, 2, 67, 2)
    assert (found.median, found.ninth_decile) == (2, 2)


def test_right_implementations_and_attacks_are_counted():
    found = script(ROOT / "tests" / "right" / "false_alarms.py")
    both = {
        impl for profile in ("core", "lm", "seq2seq") for impl in found.right_ones(profile) + found.wild_ones(profile)
    }
    right = len(both - {"conformkit.reference"})
    assert figure("right implementations, differently written") == f"{right}; 0"
    attacks = len(list((ROOT / "tests" / "attacks").rglob("attack.toml")))
    assert figure("hostile submissions") == f"{attacks}; 0"


def test_the_points_of_the_errata_are_counted():
    errata = (ROOT / "spec" / "errata.md").read_text(encoding="utf-8")
    assert int(figure("points on which the sources are wrong")) == len(re.findall(r"^### ERR-", errata, re.MULTILINE))


def test_the_page_is_one_short_table():
    """Catches a page that grows into a diary again: cells of 760 characters, a row for each day."""
    assert HEADING == ["what", "figure", "command"]
    assert len(ROWS) <= MOST_ROWS
    for what, number, command in ROWS:
        assert 0 < len(what) < 140, what
        assert re.search(r"\d", number), what
        assert command.count("`") >= 2, what


def test_each_figure_has_a_number_a_date_and_a_command():
    for one in FIGURES:
        assert re.search(r"\d", one["found"]), one
        assert one["measured"], one
        assert one["again"].count("`") >= 2, one


def test_each_command_is_there():
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    commands = {command for again in [*(one["again"] for one in FIGURES), *(row[-1] for row in ROWS)]
                for command in re.findall(r"`([^`]+)`", again)}  # fmt: skip
    assert commands
    for command in commands:
        name, *arguments = shlex.split(command)
        if name == "tox":
            assert f"[testenv:{arguments[1]}]" in tox
            assert all((ROOT / path).exists() for path in arguments[3:])
        elif name == "conform":
            assert arguments[0] == "defects"
        else:
            assert name in {"python", "pytest"}
            paths = [argument for argument in arguments if "/" in argument]
            assert paths
            assert all((ROOT / path).exists() for path in paths), command


def test_the_readme_is_short_and_leaves_figures_to_the_page():
    assert len(README.split()) <= 1350
    assert "docs/quality.md" in README
    assert not re.search(r"÷|\d %", README)
