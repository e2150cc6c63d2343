import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade import harness
from conformkit.conformance.apps.grade.assess import GradingTask
from conformkit.conformance.apps.grade.harness import Harness, HarnessDied, KitFailed
from conformkit.conformance.apps.grade.submissions import find, pack
from conformkit.conformance.versions import kit_version

from .conftest import ATTENTION, POLICY


@pytest.fixture
def task(submissions, policy):
    """Create the task of grading one file."""

    def make(code=ATTENTION, name="submissions", **changes):
        rules = policy(**changes)
        (found,) = find(submissions(name, anna__py=code)).found
        return GradingTask(pack(found, rules.archive), rules, 3, kit_version())

    return make


@pytest.fixture
def own(tmp_path):
    (tmp_path / "scratch").mkdir()
    made = Harness(tmp_path / "scratch")
    yield made
    made.stop()
    made.close()


def test_one_process_grades_one_after_the_other_and_another_one_follows_its_death(own, task):
    job = task()
    assert own.grade(job).grade.points == 10
    pid = own._process.pid
    assert own.grade(job).grade.points == 10
    assert own._process.pid == pid
    os.killpg(pid, signal.SIGKILL)
    own._process.wait()
    assert own.grade(job).grade.points == 10
    assert own._process.pid != pid


def test_a_harness_that_takes_much_too_long_is_ended(own, task, monkeypatch):
    """The limits of the policy apply inside; this is for what they do not cover."""
    job = task("import time\ntime.sleep(600)\n")
    limits = job.policy.limits
    monkeypatch.setattr(harness, "EXTRA_SECONDS", 2.0 - 4 * limits.seconds - limits.load_seconds)
    with pytest.raises(HarnessDied, match="it did not finish within 2 s"):
        own.grade(job)
    assert own._process is None


@pytest.mark.full(guard="test_a_harness_that_takes_much_too_long_is_ended")
def test_one_that_idled_for_long_is_replaced_before_it_ends_by_itself(own, task, monkeypatch):
    job = task()
    own.grade(job)
    pid = own._process.pid
    monkeypatch.setattr(harness, "_IDLE_SECONDS", 0.0)
    own.grade(job)
    assert own._process.pid != pid


def test_an_error_of_the_kit_is_reported_with_its_place(own, task, monkeypatch):
    job = task()
    object.__setattr__(job.policy, "groups", None)
    with pytest.raises(KitFailed, match=r"TypeError: .*\.py:\d+\)"):
        own.grade(job)
    assert own._process.poll() is None


def test_on_hidden_draws_an_error_of_the_kit_keeps_its_text_to_itself(own, task):
    """It could quote what was drawn."""
    job = task(seed=None)
    object.__setattr__(job.policy, "groups", None)
    with pytest.raises(KitFailed) as caught:
        own.grade(job)
    assert re.fullmatch(r"TypeError \(\S+\.py:\d+\)", str(caught.value))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc tells what a process was given")
def test_it_takes_one_core_since_there_are_as_many_as_cores(own, task, monkeypatch):
    """Without this, each harness would compute on all cores, and two would slow each other down."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    own.grade(task())
    given = Path(f"/proc/{own._process.pid}/environ").read_bytes().split(b"\0")
    assert {b"OMP_NUM_THREADS=1", b"OPENBLAS_NUM_THREADS=1", b"MKL_NUM_THREADS=1"} <= set(given)


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, "full"), (errno.EDQUOT, "full"), (errno.EIO, "failed")])
def test_a_full_disk_is_distinguished_from_a_failure_of_the_kit(task, tmp_path, monkeypatch, number, kind):
    def unpacked(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(harness, "assess", unpacked)
    told, text = harness._answer(task(), tmp_path / "scratch", harness._Trusted())
    assert told == kind
    assert (str(tmp_path) in text) == (kind == "full")


def test_a_stopped_one_is_not_started_again(own, task):
    own.stop()
    with pytest.raises(HarnessDied, match="the run was stopped"):
        own.grade(task())


@pytest.mark.full(guard="test_modules_on_the_graders_path_do_not_help")
def test_modules_of_the_current_folder_and_of_the_user_stay_out(submissions, tmp_path):
    """Neither the grader's folder nor a submission can put a module into the judging process."""
    shadow = f"open({str(tmp_path / 'witness')!r}, 'a').write(__name__)\n"
    (tmp_path / "path").mkdir()
    for name in ("numpy", "torch", "sqlite3", "rich", "conformkit", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(shadow)
    for name in ("numpy", "torch", "sqlite3", "rich"):
        (tmp_path / "path" / f"{name}.py").write_text(shadow)
    (tmp_path / "policy.toml").write_text(POLICY)
    folder = submissions(anna={"solution.py": ATTENTION, "numpy_.py": shadow, "sitecustomize.py": shadow})
    command = ["grade", str(folder), "--policy", "policy.toml", "--out", "out", "-v"]
    result = subprocess.run(
        [str(Path(sys.executable).with_name("conform")), *command], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "path")}, check=False,
    )  # fmt: skip
    assert (result.returncode, "anna: 10 of 10" in result.stdout) == (0, True), result.stderr
    assert not (tmp_path / "witness").exists()


def test_modules_on_the_graders_path_do_not_help(submissions, tmp_path):
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "helper.py").write_text("x = 1\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    folder = submissions(anna__py=f"import helper\n{ATTENTION}")
    command = [sys.executable, "-P", "-m", "conformkit.cli", "grade", str(folder), "--policy", "policy.toml"]
    result = subprocess.run(
        [*command, "--out", "out", "-v"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "path")}, check=False,
    )  # fmt: skip
    assert "No module named 'helper'" in " ".join(result.stdout.split())
