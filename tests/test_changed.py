"""`pytest --changed` finds the tests that a change concerns."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from conformkit.conformance.defects import defects
from conformkit.spec.clauses import clauses

from . import changed, concerns, reaching, recording
from .changed import Selection
from .clauses_using import clauses_using
from .concerns import Change, changed_clauses, changed_mistakes, reached
from .costs import Costs
from .reaching import telling
from .tiers import ROOT

WIRE = "conformance/driver/wire/frames.py"


def places(*files):
    return [(near, place) for near, place in Change(frozenset(files)).places()]


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """Pretend that the recording knows one file."""
    names = ["tests/far/test_x.py::test_that_reaches_it", "tests/far/test_y.py::test_too"]
    (tmp_path / "reached.json").write_text(json.dumps({"tests": names, "files": {WIRE: [1, 0]}}))
    monkeypatch.setattr(concerns, "REACHED", tmp_path / "reached.json")
    reached.cache_clear()
    yield names
    reached.cache_clear()


def test_the_recorded_map_names_files_that_exist():
    """Would break if a renamed file lost its tests, or byte code that Python writes aside counted as a file."""
    named = {*reached(), *(test.partition("::")[0] for tests in reached().values() for test in tests)}
    assert sorted(name for name in named if not (ROOT / name).is_file() or "__pycache__" in name) == []


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("conformance/apps/port/pairs.py", "tests/apps/port/test_pairs.py"),
        (WIRE, "tests/driver/test_wire.py"),
        ("cli/run.py", "tests/cli/test_run.py"),
        ("spec/rounding.py", "tests/spec/test_rounding.py"),
        ("reference/attention.py", "tests/reference/test_attention.py"),
        ("tests/report/test_junit.py", "tests/report/test_junit.py"),
        ("docs/quality.md", "tests/cli/test_quality.py"),
    ],
)
def test_the_tests_that_mirror_a_file_come_first(file, first):
    """Would break if a module were looked for in the wrong folder, or a script by its whole path."""
    assert (0, first) in places(file)


def test_tests_that_import_a_file_come_before_those_that_import_it_through_others():
    """Would break if imports inside the product, or of several names in a line, went unread."""
    near = dict((place, rank) for rank, place in places("conformance/engine/judge.py"))  # noqa: C402
    assert near["tests/engine/test_judge.py"] == 0
    assert near["tests/suite/test_reference.py"] == 1
    assert max(near.values()) > 3


def test_a_page_concerns_tests_of_its_folder_and_those_that_name_it():
    found = places("conformance/report/templates/report.html")
    assert {place.rpartition("/")[0] for near, place in found if near == 2} >= {"tests/report"}


def test_what_tests_share_concerns_its_neighbors():
    assert all(place.startswith("tests/driver/") for _, place in places("tests/driver/conftest.py"))


def test_recorded_tests_are_told_in_turn(recorded):
    assert Change(frozenset({WIRE})).families() == recorded[::-1]
    assert Change(frozenset({"README.md"})).families() == []


def test_a_changed_clause_is_found_by_its_prose_and_by_its_test():
    """Would break if a line of a helper, or of another clause, counted."""
    prose = (ROOT / "spec/attention.md").read_text().splitlines()
    at = prose.index("### SDPA-SCALE") + 1
    assert changed_clauses({"spec/attention.md": [at + 2]}) == {"SDPA-SCALE"}
    code = (ROOT / "conformance/suite/test_attention.py").read_text().splitlines()
    at = code.index('@clause("SDPA-SCALE")') + 1
    assert changed_clauses({"conformance/suite/test_attention.py": [1, at + 2]}) == {"SDPA-SCALE"}


def test_a_changed_mistake_is_found_by_its_file():
    assert changed_mistakes(["conformance/defects/attention/sdpa-no-scale.toml", "README.md"]) == {"sdpa-no-scale"}


def item(nodeid, full=False, **params):
    callspec = SimpleNamespace(params=params)
    return SimpleNamespace(nodeid=nodeid, callspec=callspec, iter_markers=lambda _: ["full"] if full else [])


REFERENCE = [item(f"tests/suite/test_reference.py::test[{name}]", clause=name) for name in sorted(clauses())[:50]]


def test_a_change_to_a_clause_runs_what_is_about_it_alone():
    name = sorted(clauses())[7]
    chosen = Selection(frozenset({"spec/attention.md"}), frozenset({name}))
    assert chosen.law_alone
    assert [one.callspec.params["clause"] for one in chosen.choose(REFERENCE, Costs({}, {}))] == [name]


def test_measurements_that_nobody_timed_do_not_delay_an_answer():
    """Would break if whole runs on a known mistake ran after each change to a clause that it breaks."""
    name = sorted(clauses())[7]
    whole = item("tests/suite/test_known_mistakes.py::test_whole[x]", full=True, clause=name)
    chosen = Selection(frozenset({"spec/attention.md"}), frozenset({name}))
    assert whole not in chosen.choose([*REFERENCE, whole], Costs({}, {}))


def test_another_file_makes_it_more_than_law():
    assert not Selection(frozenset({"spec/attention.md", "cli/run.py"}), frozenset({"SDPA-SCALE"})).law_alone
    assert not Selection(frozenset({"conformance/suite/test_attention.py"}), frozenset()).law_alone


def test_the_nearest_and_cheapest_run_until_the_budget_is_spent():
    """Would break if one dear test took the place of all others."""
    tests = [item(f"tests/driver/test_wire.py::test_{number}") for number in range(9)]
    known = Costs({}, {tests[0].nodeid: changed.SECONDS, **{test.nodeid: 1.0 for test in tests[1:]}})
    kept = Selection(frozenset({WIRE}), frozenset()).choose(tests, known)
    assert kept == tests[1:]


def test_files_with_the_nearest_tests_run_first():
    """Would break if a fault showed only after all that is far had passed."""
    tests = [
        item(f"tests/{name}::test_x") for name in ("cli/test_watch.py", "driver/test_wire.py", "driver/test_loading.py")
    ]
    kept = Selection(frozenset({WIRE}), frozenset()).choose(tests, Costs({}, {}))
    assert kept[:2] == [tests[1], tests[2]]


def test_dear_tests_come_back_to_the_quick_tier_when_a_change_is_near():
    near, far = (SimpleNamespace(nodeid=f"tests/{name}::test_x") for name in ("driver/test_wire.py", "cli/test_law.py"))
    assert changed.quick_again([near, far], Costs({}, {}), frozenset({WIRE})) == {near.nodeid}


def line_of(file, text):
    return (ROOT / file).read_text().splitlines().index(text) + 1


@pytest.mark.parametrize(
    ("file", "text", "users"),
    [
        ("conformance/evidence/bias_by_distance.py", "    variant = instance.subject.variant", {"REL-FAR", "REL-NEAR"}),
        ("conformance/suite/test_windows.py", "SHORT = 40", {"WIN-BASES"}),
    ],
)
def test_changed_evidence_is_judged_by_the_clauses_that_use_it(file, text, users):
    """Would break if a helper's name were not followed into other modules, or all clauses of a file counted."""
    found = clauses_using({file: [line_of(file, text)]})
    assert users <= found
    assert len(found) < 10


def test_each_clause_that_uses_changed_evidence_has_known_mistakes_which_judge_it():
    """Would break if evidence that takes everything for right were noticed by nothing that is wrong."""
    mistakes = changed._mistakes_of({"REL-FAR", "SDPA-SCALE"})
    assert {len({"REL-FAR"} & set(defects()[name].clauses)) for name in mistakes} == {0, 1}
    assert len(mistakes) <= 2 * changed.OF_EACH
    wrong = item("tests/suite/test_known_mistakes.py::test_x[m]", mistake=min(mistakes))
    chosen = Selection(frozenset({"conformance/evidence/bias_by_distance.py"}), frozenset(), mistakes)
    assert chosen.choose([wrong], Costs({}, {})) == [wrong]


def test_lines_of_a_change_are_those_of_the_new_file(monkeypatch):
    told = "@@ -3,2 +3,3 @@ x\n-a\n+b\n@@ -9 +10,0 @@\n"
    monkeypatch.setattr(changed.tiers, "base", lambda: "HEAD")
    monkeypatch.setattr(changed.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=told))
    assert changed.changed_lines(["spec/attention.md", "README.md"]) == {"spec/attention.md": [3, 4, 5, 10]}


def test_new_files_are_added_to_what_is_recorded(recorded, tmp_path, monkeypatch):
    """Would break if a recording of a few tests forgot, or replaced, what all of them had told of other files."""
    monkeypatch.setattr(reaching, "REACHED", concerns.REACHED)
    ran = [f"{WIRE}::send", "cli/new.py::main"]
    (tmp_path / "recorded").write_text(json.dumps({"test": "tests/test_z.py::test_z[1]", "seconds": 0.1, "ran": ran}))
    assert reaching.write([tmp_path / "recorded"], add=True) == (1, 2)
    reached.cache_clear()
    assert reached() == {WIRE: recorded[::-1], "cli/new.py": ["tests/test_z.py::test_z"]}
    reaching.write([tmp_path / "recorded"])
    reached.cache_clear()
    assert reached()[WIRE] == ["tests/test_z.py::test_z"]


def test_the_most_telling_tests_come_first():
    """Would break if a slow test that runs everything came before quick ones, or one that adds nothing were lost."""
    ran = {"all": {"f", "g", "h"}, "f": {"f"}, "g": {"g", "f"}, "again": {"g"}}
    seconds = {"all": 9.0, "f": 0.1, "g": 0.1, "again": 0.3}
    told = telling({name: frozenset(of) for name, of in ran.items()}, seconds)
    assert told == ["g", "all", "f", "again"]


def test_what_runs_in_other_processes_is_recorded(tmp_path, monkeypatch):
    """Would break if a worker's functions were missing: most of what judges a package runs next to it."""
    hook, out = tmp_path / "unused.pth", tmp_path / "recorded"
    monkeypatch.setattr(recording, "HOOK", hook)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "folder")
    recorder = recording.Recorder(out)
    turn = recorder.pytest_runtest_protocol(SimpleNamespace(nodeid="a.py::test_x"))
    before = sys.gettrace()
    next(turn)
    program = f"{hook.read_text()}\nfrom conformkit.conformance.driver.spawn.usage import amount\nprint(amount(3))"
    subprocess.run([sys.executable, "-c", program], check=True, env={}, capture_output=True)
    with pytest.raises(StopIteration):
        next(turn)
    sys.settrace(before)
    threading.settrace(before)
    recorder.pytest_unconfigure()
    assert "conformance/driver/spawn/usage.py::amount" in json.loads(out.read_text())["ran"]
    assert not hook.exists()
