"""An implementation is located once in a run, and its conform.toml is read once, however many workers judge it."""

import tomllib
from collections import Counter

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.driver import location
from tests.engine.conftest import ATTENTION

DECLARED = '[implementation]\nframework = "numpy"\n'
TWO_DOCUMENTS = ("--only", "SDPA-OUT-SHAPE,MASK-NONE")


def conform(*words):
    return CliRunner().invoke(app, list(words), prog_name="conform")


@pytest.fixture
def implementation(tmp_path):
    folder = tmp_path / "mypkg"
    folder.mkdir()
    (folder / "attention.py").write_text(ATTENTION)
    (folder / "conform.toml").write_text(DECLARED)
    return str(folder)


@pytest.fixture
def counted(monkeypatch, implementation):
    """Count how often it is located and its declarations are parsed, whoever does so."""
    counts = Counter()
    find, parse = location._locate, tomllib.loads

    def locate(text, folder):
        counts["located"] += text == implementation
        return find(text, folder)

    def loads(text, **options):
        counts["parsed"] += text == DECLARED
        return parse(text, **options)

    monkeypatch.setattr(location, "_locate", locate)
    monkeypatch.setattr(tomllib, "loads", loads)
    return counts


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_run_finds_it_once(implementation, counted, workers, isolation):
    words = ("--isolation", isolation, "-n", workers, *TWO_DOCUMENTS)
    result = conform("run", "--impl", implementation, *words)
    assert "2 of 2 clauses pass" in " ".join(result.stdout.split()), result.output
    assert counted == {"located": 1, "parsed": 1}


def test_a_project_file_is_parsed_once(implementation, counted, tmp_path, monkeypatch):
    (tmp_path / "mypkg" / "conform.toml").unlink()
    text = '[tool.conform.implementation]\nframework = "numpy"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr("tests.engine.test_found_once.DECLARED", text)
    conform("run", "--impl", implementation, *TWO_DOCUMENTS)
    assert counted == {"located": 1, "parsed": 1}


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        (("inspect", "--impl", "{}"), 1),
        (("compare", "{}", "{}.json", *TWO_DOCUMENTS), 1),
        (("adapt", "{}"), 0),
        (("repro", "SDPA-SCALE", "--impl", "{}", "--out", "{}.py"), 1),
    ],
    ids=["inspect", "compare", "adapt", "repro"],
)
def test_so_do_the_other_commands(implementation, counted, words, parsed):
    conform("run", "--impl", implementation, *TWO_DOCUMENTS, "--json", implementation + ".json")
    counted.clear()
    result = conform(*(word.format(implementation) for word in words))
    assert result.exit_code in {0, 1, 3}, result.output  # 3: a draft that leaves most parts open
    assert counted["located"] == 1
    assert counted["parsed"] == parsed
