"""What of a run counts: baselines, the failures of the last run, what changed, exit codes."""

import json
import subprocess

import pytest

from conformkit.conformance.apps.watch.since import changed_since, reached_parts
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Result, Verdict

FAIL = Verdict.FAIL


@pytest.fixture
def red(fake_run, small_law):
    fake_run.results[1] = Result(small_law["SDPA-SCALE"], FAIL)
    return fake_run


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_written_baseline_turns_the_next_run_green_and_a_new_failure_red(conform, red, small_law, here):
    assert conform("run", "mypkg", "--update-baseline").exit_code == 0
    assert json.loads((here / "conform-baseline.json").read_text())["known"] == {"SDPA-SCALE": "fail"}
    known = conform("run", "mypkg", "--baseline", "conform-baseline.json")
    assert known.exit_code == 0
    assert "does not conform" in known.stdout
    red.results[0] = Result(small_law["SDPA-SHAPE"], FAIL)
    new = conform("run", "mypkg", "--baseline", "conform-baseline.json")
    assert new.exit_code == 1
    assert "new, not in conform-baseline.json: SDPA-SHAPE" in " ".join(new.stdout.split())


def test_a_baseline_in_the_folder_counts_only_if_it_is_named(conform, red):
    conform("run", "mypkg", "--update-baseline")
    assert conform("run", "mypkg").exit_code == 1


def test_no_baseline_accepts_what_could_not_be_judged(conform, red, monkeypatch):
    from dataclasses import replace

    from conformkit.conformance import runner

    judged = runner.run
    unusable = {"FeedForward": Unusable("it cannot be built")}
    monkeypatch.setattr(runner, "run", lambda *a, **k: replace(judged(*a, **k), unusable=unusable))
    assert conform("run", "mypkg", "--update-baseline", "--exit-zero").exit_code == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--baseline", "none.json"], "there is no file none.json; --update-baseline writes it"),
        (["--baseline", "."], "cannot be read: Is a directory"),
        (["--update-baseline", "-x"], "contradicts --stop-at-first"),
        (["--update-baseline", "--baseline", "no/such/b.json"], "the folder no/such does not exist"),
    ],
    ids=["missing", "a folder", "with -x", "nowhere to write"],
)
def test_a_baseline_that_cannot_be_used_is_told_before_anything_runs(conform, red, options, words):
    result = conform("run", "mypkg", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert red.requests == []


def test_exit_zero_reports_and_ends_with_0(conform, red):
    result = conform("run", "mypkg", "--exit-zero")
    assert result.exit_code == 0
    assert "does not conform" in result.stdout


def test_lf_judges_what_did_not_pass_the_last_time(conform, red):
    first = conform("run", "mypkg", "--lf")
    assert "no failure is known from an earlier run here" in first.stderr
    conform("run", "mypkg", "--lf")
    conform("run", "other", "--lf")
    assert [request.only for request in red.requests] == [(), ("SDPA-SCALE",), ()]


def test_x_reaches_the_run_with_what_is_known(conform, red):
    conform("run", "mypkg", "--update-baseline")
    conform("run", "mypkg", "-x", "--baseline", "conform-baseline.json")
    assert (red.requests[1].stop, list(red.requests[1].accepted)) == (True, ["SDPA-SCALE"])


def git(folder, *words):
    command = ["git", "-c", "user.email=a@b", "-c", "user.name=a", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


SOURCE = "def attend(q):\n    return q\n\n\nclass Block:\n    def forward(self, x):\n        return attend(x)\n"


def test_changed_ends_with_0_where_only_a_comment_changed_and_judges_nothing(conform, red, here):
    (here / "mine.py").write_text(SOURCE)
    git(here, "init", "-q")
    git(here, "add", ".")
    git(here, "commit", "-qm", "one")
    (here / "mine.py").write_text(SOURCE + "# said\n")
    result = conform("run", "mine.py", "--changed", "HEAD")
    assert (result.exit_code, red.requests) == (0, [])
    assert "no code of mine.py has changed since HEAD" in result.stderr
    wrong = conform("run", "mine.py", "--changed", "nosuch")
    assert (wrong.exit_code, red.requests) == (2, [])
    assert "has no revision 'nosuch'; name a branch" in " ".join(wrong.stderr.split())


def test_a_change_reaches_what_uses_the_changed_definition_and_nothing_else(here):
    old, new = here / "old" / "mine.py", here / "mine.py"
    old.parent.mkdir()
    old.write_text(SOURCE + "\n\nclass Other:\n    pass\n")
    new.write_text(old.read_text().replace("return q", "return 2 * q"))
    changed, files = changed_since(new, old)
    sources = {"Block": "mine.py:5", "Other": "mine.py:10"}
    assert reached_parts(changed, sources, here, files) == {"Block"}


def test_an_earlier_conform_toml_next_to_the_code_is_no_change(here):
    for folder in (here / "old", here / "new"):
        folder.mkdir()
        (folder / "mine.py").write_text(SOURCE)
        (folder / "conform.toml").write_text("[variant]\n")
    assert changed_since(here / "new" / "mine.py", here / "old" / "mine.py")[0].files == ()
