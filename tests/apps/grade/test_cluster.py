"""A real scheduler and two workers on this machine, as for a class that is too large for one machine."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack

import pytest

from conformkit.conformance.apps.grade import executor
from conformkit.conformance.apps.grade.executor import ExecutorUnusable, cluster
from conformkit.conformance.apps.grade.grade import GradeRequest, grade
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.apps.grade.store import FILE

from .conftest import ATTENTION, POLICY, UNSCALED

STUDENTS = {f"s{n}__py": (ATTENTION if n % 2 else UNSCALED) + f"# {n}\n" for n in range(8)}
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error", "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1 h"}


@pytest.fixture
def dask(tmp_path):
    """Start a scheduler and two single-threaded workers; yield its process, its address and the workers' processes."""
    with ExitStack() as ending:

        def start(module, *arguments):
            command = [sys.executable, "-P", "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
            process = subprocess.Popen(
                command, cwd=tmp_path, env={**os.environ, **QUIET}, stderr=subprocess.PIPE, text=True
            )
            ending.callback(process.wait)
            ending.callback(process.stderr.close)
            ending.callback(process.kill)
            return process

        scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "scheduler.json")
        contact = tmp_path / "scheduler.json"
        while not (contact.exists() and contact.read_text().endswith("}")):
            assert scheduler.poll() is None, scheduler.stderr.read()
        address = json.loads(contact.read_text())["address"]
        folder = ("--local-directory", str(tmp_path / "dask"))
        workers = [start("dask_worker", address, "--nthreads", "1", "--no-nanny", *folder) for _ in range(2)]
        yield scheduler, address, workers


def started(folder, tmp_path, *options):
    command = [sys.executable, "-P", "-m", "conformkit.cli", "grade", str(folder)]
    places = ["--policy", str(tmp_path / "policy.toml"), "--out", str(tmp_path / "out")]
    return subprocess.Popen(
        [*command, *places, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )


def told(grades):
    return {g.submission.id: (g.outcome, g.points, g.groups, g.message) for g in grades}


@pytest.mark.full(guard="test_an_unreachable_address_is_reported")
def test_a_cluster_that_loses_a_worker_grades_everybody_once_and_as_this_machine_does(
    dask, submissions, policy, tmp_path
):
    folder = submissions(**STUDENTS)
    here = grade(GradeRequest(folder, policy(), tmp_path / "here", workers=2))
    (tmp_path / "policy.toml").write_text(POLICY)
    _, address, workers = dask
    with started(folder, tmp_path, "--executor", address.replace("tcp://", "dask://")) as process:
        first = process.stderr.readline()
        workers[0].send_signal(signal.SIGKILL)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert "8 submissions graded (8 judged)" in stdout
    rows = sqlite3.connect(tmp_path / "out" / FILE).execute("SELECT grade FROM result").fetchall()
    assert len(rows) == 8
    assert told(Grade.from_object(json.loads(text)) for (text,) in rows) == told(here.grades)
    names = re.findall(r"^\[\d/8\] (\w+):", first + stderr, re.MULTILINE)
    assert sorted(names) == sorted(told(here.grades))


@pytest.mark.full(guard="test_an_unreachable_address_is_reported")
def test_a_cluster_that_goes_away_ends_the_run_and_the_same_command_continues(dask, submissions, tmp_path):
    folder = submissions(**STUDENTS)
    (tmp_path / "policy.toml").write_text(POLICY)
    scheduler, address, _ = dask
    with started(folder, tmp_path, "--executor", address) as process:
        assert process.stderr.readline().startswith("[1/8]")
        scheduler.kill()
        _, stderr = process.communicate()
    assert process.returncode == 5
    assert "the run ended early: the cluster at" in stderr
    assert "run the same command to continue" in stderr
    assert "Traceback" not in stderr
    with started(folder, tmp_path, "-n", "2") as process:
        stdout, _ = process.communicate()
    assert "8 submissions graded" in stdout
    assert re.search(r"graded, [1-7] of them now", stdout)


def test_an_unreachable_address_is_reported(monkeypatch):
    monkeypatch.setattr(executor, "_CONNECT_SECONDS", "1s")
    words = "no scheduler answers at tcp://127.0.0.1:1"
    with pytest.raises(ExecutorUnusable, match=words), cluster("tcp://127.0.0.1:1"):
        pass
