"""Outcomes from the store are of cases that have passed, and of which nothing has changed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests import outcomes
from tests.outcomes import Inputs, Outcomes, Store, depends_on, digest, law
from tests.suite import test_known_mistakes, test_twins
from tests.tiers import ROOT

pytest_plugins = ["pytester"]

KNOWN = "tests/suite/test_known_mistakes.py"
MISTAKE = "sdpa-no-scale"
RECORDED = """
import importlib.util, json, pathlib, sys
read = set()
sys.addaudithook(lambda event, args: read.add(str(args[0])) if event == "open" else None)
from conformkit.conformance.defects import defect
from conformkit.conformance.diagnosis.measuring import named_with
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import worker_factory
from conformkit.conformance.suite import registry
registry._stems = lambda profile: sys.argv[2:]
warm = SharedFactory(worker_factory(1, torch=True))
named_with(defect(sys.argv[1]), warm)
warm.close()
source = importlib.util.source_from_cache
print(json.dumps(sorted(source(path) if path.endswith(".pyc") else path for path in read)))
"""
"""Prints all files that the harness reads or imports while it judges a known mistake, of the suite only these tests."""


@pytest.mark.parametrize(
    "mistake",
    [
        MISTAKE,
        pytest.param("s2s-source-reads-target-table", marks=pytest.mark.full(guard="test_all_that_is_read_counts")),
    ],
)
def test_all_that_is_read_counts(mistake: str) -> None:
    """Would break if a module that is imported by its name, or data that is read, were not in the digest."""
    inputs = test_known_mistakes.inputs(mistake)
    stems = [Path(module).stem.removeprefix("test_") for module in inputs.modules]
    command = [sys.executable, "-P", "-c", RECORDED, mistake, *stems]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    places = {Path(path) for path in json.loads(done.stdout)}
    read = {place.relative_to(ROOT).as_posix() for place in places if place.is_relative_to(ROOT)}
    read = {file for file in read if not file.startswith((".venv", ".git")) and ".pyc." not in file}  # being written
    words = {file for file in read if file.startswith("spec/") and file.endswith(".md")}  # the clauses' words count
    assert "conformance/engine/judge.py" in read
    assert sorted(read - words - depends_on(KNOWN, inputs)) == []


def test_a_change_of_any_file_of_a_case_changes_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = test_known_mistakes.inputs(MISTAKE)
    files = depends_on(KNOWN, inputs)
    assert {
        KNOWN, "spec/attention.py", "reference/attention.py", "conformance/suite/test_attention.py",
        "conformance/engine/judge.py", "conformance/probing/known.py", "conformance/driver/worker/main.py",
        f"conformance/defects/attention/{MISTAKE}.toml",
    } <= files  # fmt: skip
    before, read = digest(KNOWN, "case", inputs), outcomes._of_file
    for changed in sorted({*files, "tests/conftest.py", "pyproject.toml"}):
        monkeypatch.setattr(outcomes, "_of_file", lambda file, one=changed: "other" if file == one else read(file))
        assert digest(KNOWN, "case", inputs) != before, changed


def test_words_tests_seeds_and_versions_change_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = test_known_mistakes.inputs(MISTAKE)
    before = digest(KNOWN, "case", inputs)
    assert digest(KNOWN, "case", inputs) == before
    assert digest(KNOWN, "another case", inputs) != before
    assert digest(KNOWN, "case", replace(inputs, texts=(*inputs.texts[1:], f"{inputs.texts[0]}."))) != before
    monkeypatch.setattr(outcomes, "_installed", lambda: "another torch")
    assert digest(KNOWN, "case", inputs) != before


def test_what_a_known_mistake_cannot_meet_does_not_count() -> None:
    """Would break if an outcome were measured again for a change to a page, a report or another part of the law."""
    files = depends_on(KNOWN, test_known_mistakes.inputs(MISTAKE))
    others = (
        "cli/",
        "docs/",
        "conformance/apps/",
        "conformance/report/",
        "conformance/api/",
        "conformance/suite/test_model",
    )
    assert [file for file in files if file.startswith(others)] == []
    assert [Path(file).stem for file in files if file.endswith(".toml")] == [MISTAKE]


def test_twins_depend_on_what_each_of_them_depends_on() -> None:
    files = depends_on("tests/suite/test_twins.py", test_twins.inputs("create_masks"))
    for mistake in ("pad-masks-either", "pad-masks-not-causal"):
        assert depends_on(KNOWN, test_known_mistakes.inputs(mistake)) - {KNOWN} <= files
    assert [file for file in files if file.startswith(("cli/", "conformance/apps/", "conformance/report/"))] == []


def test_clauses_that_are_needed_count_and_lines_do_not() -> None:
    scale, shape = law(["SDPA-SCALE"]), law(["SDPA-OUT-SHAPE"])
    assert set(shape.texts) < set(scale.texts)
    assert all("line=0" in text for text in scale.texts)
    assert set(shape.modules) <= set(scale.modules)
    assert "conformance/suite/test_attention.py" in scale.modules


CASES = """
import pytest

@pytest.fixture
def trouble():
    yield
    raise OSError("left over")

@pytest.mark.stored(inputs=None)
@pytest.mark.parametrize("case", ["right", "wrong", "skipped"])
def test_case(case):
    with open("ran", "a") as log:
        log.write(case + "\\n")
    if case == "skipped":
        pytest.skip("not here")
    assert case == "right"

@pytest.mark.stored(inputs=None)
def test_ends_badly(trouble):
    pass

def test_unmarked():
    pass
"""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Path:
    pytester.makeini("[pytest]\nmarkers = stored: kept")
    pytester.makepyfile(CASES)
    monkeypatch.setattr(outcomes, "key_of", lambda item: item.nodeid if item.get_closest_marker("stored") else None)
    return pytester.path / "cache" / "outcomes.txt"


def run(pytester: pytest.Pytester, store: Path, *, ignored: bool = False) -> pytest.RunResult:
    plugin = Outcomes(store, ignored=ignored)
    return pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:xdist", plugins=[plugin])


def test_only_what_has_passed_is_kept_and_it_is_counted_apart(pytester: pytest.Pytester, store: Path) -> None:
    first = run(pytester, store)
    assert first.parseoutcomes() == {"passed": 3, "failed": 1, "skipped": 1, "errors": 1}
    (kept,) = store.read_text().splitlines()
    assert kept.endswith("test_case[right]")
    again = run(pytester, store)
    assert again.parseoutcomes() == {"passed": 2, "failed": 1, "skipped": 1, "errors": 1, "stored": 1}
    again.stdout.fnmatch_lines(["1 outcomes from the store *; --no-store measures them again"])
    assert (pytester.path / "ran").read_text().split().count("right") == 1
    assert run(pytester, store, ignored=True).parseoutcomes()["passed"] == 3
    assert (pytester.path / "ran").read_text().split().count("right") == 2


def test_the_oldest_outcomes_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST", 10)
    file = tmp_path / "deep" / "outcomes.txt"
    store = Store(file)
    for number in range(11):
        store.keep(f"key {number}")
    assert "key 10" in Store(file)
    assert "key 10" not in store
    Store.trim(file)
    assert Store(file)._known == {f"key {number}" for number in range(6, 11)}


def test_a_store_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    Store(tmp_path / "file" / "outcomes.txt").keep("key")


def test_a_folder_counts_with_all_that_is_in_it() -> None:
    files = depends_on("tests/test_outcomes.py", Inputs(files=(ROOT / "tests" / "right" / "llama",)))
    assert {"tests/right/llama/__init__.py", "tests/right/llama/conform.toml"} <= files
