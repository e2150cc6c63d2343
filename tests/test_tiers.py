"""The quick tier guards what the full one measures, and selects its cases by the changed files."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from types import SimpleNamespace

import pytest

from . import tiers
from .tiers import COLLECTED, ROOT, Collected, changed_files, quick_ones, sampled

CASES = {name: [f"folder/{name}"] for name in ("a", "b", "c", "d", "e")}


@pytest.fixture
def changed(monkeypatch):
    """Return a function that sets which files changed."""
    monkeypatch.setenv(tiers.CHANGED, "")
    monkeypatch.delenv(tiers.QUICK_ALONE, raising=False)
    return lambda *files: monkeypatch.setenv(tiers.CHANGED, "\n".join(files))


def test_whatever_only_the_full_tier_runs_has_a_quick_guard(pytestconfig):
    """Would break if a test were marked `full` and nothing in the quick tier guarded the same behavior."""
    assert pytestconfig.stash[COLLECTED].unguarded() == []


def test_a_test_needs_a_quick_case_or_a_quick_guard():
    quick = frozenset({"x.py::test_sampled", "x.py::test_guard"})
    full = {"x.py::test_sampled": "", "x.py::test_guarded": "test_guard", "y.py::test_far": "test_guard"}
    wrong = {"x.py::test_alone": "", "y.py::test_gone": "test_away"}
    assert Collected(quick, {**full, **wrong}).unguarded() == sorted(wrong)


def test_by_default_neither_full_nor_gpu_tests_run():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["addopts"][-2:] == ["-m", "not gpu and not full"]


def test_ci_runs_both_tiers_and_no_test_twice():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r'pytest" -m "full and not gpu" -n logical --part "\$part"', text)
    assert 'pytest -m "not gpu"' in (ROOT / "tox.ini").read_text(encoding="utf-8")


def test_without_a_change_the_fixed_sample_is_quick(changed):
    assert quick_ones(CASES, ["b"]) == {"b"}


def test_what_changed_is_quick_too(changed):
    changed("folder/a", "folder/d/deep/file.py", "folder/eagle", "elsewhere")
    assert quick_ones(CASES, ["b"]) == {"a", "b", "d"}


def test_of_a_large_change_a_few_cases_at_even_distances_are_quick(changed):
    changed(*(f"folder/{name}" for name in CASES))
    assert quick_ones(CASES, [], most=2) == {"a", "d"}
    assert quick_ones(CASES, [], most=9) == set(CASES)


def test_a_sample_that_names_no_case_is_refused(changed):
    with pytest.raises(KeyError, match=r"the sample names \['z'\]"):
        quick_ones(CASES, ["a", "z"])


def test_all_but_the_quick_cases_are_marked(changed):
    parameters = sampled(CASES, always=["c"])
    assert [p.id for p in parameters if not p.marks] == ["c"]
    assert {mark.name for p in parameters for mark in p.marks} == {"full"}


def test_what_is_left_of_a_large_change_is_known_to_be_near(changed):
    """Would break if, of a clause's known mistakes, all but a few waited for their turn when the clause changed."""
    parameters = sampled("ab", always=[], files=CASES.__getitem__, near=lambda _: ["reference"], most=1)
    assert [mark.kwargs["near"] for p in parameters for mark in p.marks] == [
        ("folder/a", "reference"), ("folder/b", "reference"),
    ]  # fmt: skip


def test_where_no_full_case_can_run_one_stands_for_all(changed, monkeypatch):
    """Would break if the quick tier collected thousands of cases to deselect, or forgot that a test has such cases."""
    monkeypatch.setenv(tiers.QUICK_ALONE, "1")
    assert [p.id for p in sampled(CASES, always=["c"])] == ["a", "c"]


@pytest.mark.parametrize(
    ("marks", "place", "alone"),
    [("not gpu and not full", "tests", True), ("", "tests", False), ("not full", "tests/test_x.py::test_x[a]", False)],
)
def test_cases_are_left_out_only_where_nobody_asks_for_them(marks, place, alone, monkeypatch):
    """Would break if a case of the full tier that is named were not found, or `-m ""` ran the quick ones alone."""
    monkeypatch.setenv(tiers.QUICK_ALONE, "")
    tiers.says_what_runs(SimpleNamespace(args=[place], option=SimpleNamespace(markexpr=marks)))
    assert bool(os.environ[tiers.QUICK_ALONE]) is alone


def test_what_changed_is_marked_as_concerned(changed):
    changed("folder/a", "folder/c")
    parameters = sampled(CASES, always=["c"], files=CASES.__getitem__)
    assert {p.id: [mark.name for mark in p.marks] for p in parameters if p.id in "abc"} == {
        "a": ["concerned"], "b": ["full"], "c": [],
    }  # fmt: skip


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    for name in ("kept", "edited", "removed"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "init", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "first")
    return tmp_path


def test_what_is_not_committed_yet_is_changed(repository):
    (repository / "edited").write_text("other")
    (repository / "removed").unlink()
    (repository / "größer").write_text("new")
    assert changed_files() == {"edited", "removed", "größer"}


def test_what_a_branch_changed_is_changed(repository):
    git(repository, "switch", "--create", "branch")
    (repository / "edited").write_text("other")
    git(repository, "commit", "--all", "--message", "second")
    assert changed_files() == {"edited"}
    git(repository, "switch", "main")
    assert changed_files() == set()


def test_main_itself_is_compared_with_a_commit_that_is_named(repository, monkeypatch):
    """Would break if CI on main took no case as concerned by what was pushed."""
    (repository / "edited").write_text("other")
    git(repository, "commit", "--all", "--message", "second")
    monkeypatch.setenv(tiers.BASE, "HEAD~1")
    assert changed_files() == {"edited"}
    monkeypatch.setenv(tiers.BASE, "0" * 40)
    assert changed_files() == set()


def test_without_git_nothing_is_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert changed_files() == set()
    monkeypatch.setenv("PATH", "")
    assert changed_files() == set()
