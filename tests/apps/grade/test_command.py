import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.apps.grade.policy_file import example
from conformkit.conformance.apps.grade.store import opened
from tests.attacks.sandboxes import sandbox

from .conftest import ATTENTION, POLICY, UNSCALED

HOSTILE = "[red]\x1b[31mx\u202e=cmd|' /C calc'!A0"


@pytest.fixture
def place(tmp_path, submissions, monkeypatch):
    """A folder with submissions and a policy, which is the current one."""
    submissions(anna__py=ATTENTION, ben__py=UNSCALED)
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def conform(place):
    """Run conform grade in this process; the usual arguments first."""

    def call(*arguments, submissions="submissions", policy="policy.toml", out="out"):
        usual = ["grade", submissions, "--policy", policy, "--out", out, "-n", "2"]
        return CliRunner().invoke(app, [*usual, *arguments], prog_name="conform")

    return call


def test_it_says_who_got_what_and_where_the_results_are(conform, place):
    result = conform("-v")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == ["anna: 10 of 10", "ben: 5 of 10"]
    assert "points: median 75%, from 50% to 100%" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("2 submissions graded (2 judged); results in out")
    assert sorted(line.partition("] ")[2] for line in result.stderr.splitlines()) == result.stdout.splitlines()[:2]
    assert {"grades.csv", "grades.sqlite", "overview.html", "logs", "students"} <= {
        p.name for p in (place / "out").iterdir()
    }
    again = conform("-q")
    assert again.stderr == ""
    assert "2 submissions graded, 0 of them now (2 judged)" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "places", "words"),
    [
        ([], {"policy": "nowhere.toml"}, ["--policy", "there is no file nowhere.toml", "strict, course, encouraging"]),
        ([], {"submissions": "nowhere"}, ["SUBMISSIONS", "there is no folder nowhere"]),
        ([], {"out": "a/b"}, ["--out", "mkdir -p a"]),
        ([], {"out": "submissions/out"}, ["--out", "is inside the folder of submissions"]),
        ([], {"out": "policy.toml"}, ["--out", "is a file"]),
        (["-n", "0"], {}, ["-n"]),
        (["--executor", "slurm"], {}, ["--executor", "neither local nor dask://HOST:PORT"]),
        (["--executor", "dask://nowhere"], {}, ["--executor"]),
        (["--isolation", "none"], {}, ["--isolation", "sandbox, process"]),
        (["-v", "-q"], {}, ["--quiet", "contradicts"]),
        (["--polici", "x"], {}, ["--policy"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_a_sentence_with_code_2_and_changes_nothing(conform, place, arguments, places, words):
    before = sorted(place.rglob("*"))
    result = conform(*arguments, **places)
    assert result.exit_code == 2
    assert all(word in " ".join(result.stderr.split()) for word in words), result.stderr
    assert sorted(place.rglob("*")) == before


def test_a_policy_that_cannot_be_used_names_its_line(conform, place):
    (place / "policy.toml").write_text(POLICY.replace("SDPA-FORMULA", "SDPA-FORMULAS"))
    result = conform()
    assert (result.exit_code, result.stdout) == (2, "")
    assert 'policy.toml, line 10: groups[0].clauses[2]: there is no clause "SDPA-FORMULAS"' in result.stderr
    assert "nearest: SDPA-FORMULA" in result.stderr
    assert not (place / "out").exists()


def test_two_students_with_one_name_stop_it_before_anything_runs(conform, place):
    (place / "submissions" / "Anna").mkdir()
    result = conform()
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "Anna" in said
    assert "anna.py would belong to the same student" in said
    assert not (place / "out").exists()


def test_a_damaged_file_of_results_is_code_5_and_no_run_claims_to_continue(conform, place):
    conform()
    path = place / "out" / "grades.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + os.urandom(1 << 14))
    result = conform()
    assert result.exit_code == 5
    assert "is damaged" in result.stderr
    assert "goes on" not in result.stderr


def test_two_concurrent_runs_are_detected(conform, place):
    with opened(place / "out"):
        result = conform()
    assert result.exit_code == 2
    assert "another run is grading into out" in " ".join(result.stderr.split())


def test_the_example_policy_can_be_written_to_a_file_and_used(conform, place):
    shown = CliRunner().invoke(app, ["grade", "--example-policy"], prog_name="conform")
    assert (shown.exit_code, shown.stdout) == (0, example())
    (place / "policy.toml").write_text(shown.stdout)
    assert conform("--dry-run").exit_code == 0


def test_a_dry_run_says_what_would_be_done_and_does_nothing(conform, place):
    (place / "submissions" / "notes.txt").write_text("")
    result = conform("--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "file     anna.py",
        "file     ben.py",
        "ignored: notes.txt",
        "      10 points for 3 clauses: attention (parts)",
        "2 submissions to judge",
        "2 submissions, isolation process, seed 3, hints 0",
    ]
    assert not (place / "out").exists()


def test_a_dry_run_says_whose_the_submissions_are(conform, place):
    policy = place / "policy.toml"
    policy.write_text(policy.read_text() + '\n[course]\nroster = "roster.csv"\n')
    (place / "roster.csv").write_text("id,name\ns1,Anna\ns2,Carla\n")
    lines = conform("--dry-run").stdout.splitlines()
    assert {"2 students on the roster, 1 without a submission", "not on the roster: ben"} <= set(lines)
    (place / "roster.csv").write_bytes(b"id,name\n\xf9,Anna\n")
    result = conform("--dry-run")
    assert (result.exit_code, "is not text in UTF-8" in result.stderr) == (2, True)


def test_a_kit_that_failed_is_code_5(conform, monkeypatch):
    from conformkit.conformance.apps.grade import executor
    from conformkit.conformance.apps.grade.harness import HarnessDied

    class Dying:
        def grade(self, task):
            raise HarnessDied("killed by SIGKILL")

        def stop(self):
            pass

        close = stop

    monkeypatch.setattr(executor, "Harnesses", lambda scratch: Dying())
    result = conform()
    assert result.exit_code == 5
    assert "anna, kit failed: killed by SIGKILL" in result.stdout


def test_unavailable_isolation_is_code_4_and_nobody_gets_zero_for_it(conform, place, tmp_path_factory):
    """A PATH without bwrap."""
    empty = tmp_path_factory.mktemp("empty")
    command = [sys.executable, "-P", "-m", "conformkit.cli", "grade", "submissions", "--policy", "policy.toml"]
    result = subprocess.run(
        [*command, "--out", "out", "--isolation", "sandbox"], env={**os.environ, "PATH": str(empty)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 4
    assert "bwrap" in result.stderr
    assert "bubblewrap" in result.stderr
    assert not list((place / "out").glob("logs/*"))


@sandbox
def test_a_submission_in_a_sandbox_gets_what_it_gets_outside(conform, place):
    result = conform("-v", "--isolation", "sandbox")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[:2] == ["anna: 10 of 10", "ben: 5 of 10"]


def test_hostile_names_print_as_text(conform, place):
    (place / "submissions" / f"{HOSTILE.replace('/', '')}.py").write_text(f"raise ValueError({HOSTILE!r})\n")
    result = conform("-v")
    assert result.exit_code == 0
    assert "[red]" in result.stdout
    assert not {"\x1b", "\u202e"} & set(result.stdout + result.stderr)


@pytest.mark.full(guard="test_it_says_who_got_what_and_where_the_results_are")
def test_a_narrow_terminal_shows_a_bar_and_leaves_no_trace_of_it(place):
    command = [sys.executable, "-P", "-m", "conformkit.cli", "grade", "submissions", "--policy", "policy.toml"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command, "--out", "out"], stdout=subprocess.PIPE, stderr=theirs, text=True,
        env={**os.environ, "COLUMNS": "30", "TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(theirs)
        drawn = b""
        while True:
            try:
                drawn += os.read(ours, 1 << 16)
            except OSError:
                break
        stdout = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert b"0/2" in drawn
    assert b"anna" in drawn
    assert b"Traceback" not in drawn
    assert "\x1b" not in stdout


@pytest.mark.full(guard="test_it_says_who_got_what_and_where_the_results_are")
def test_a_reader_who_leaves_changes_nothing(place):
    command = f"{sys.executable} -P -m conformkit.cli grade submissions --policy policy.toml --out out -v 2>err | true"
    subprocess.run(["bash", "-c", command], check=False)
    assert "Traceback" not in (place / "err").read_text()
    assert (place / "out" / "grades.csv").exists()
