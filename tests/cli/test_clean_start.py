import os
import sys
from pathlib import Path

import pytest

from conformkit.cli import clean_start


def test_an_ordinary_start_stays_in_its_process():
    assert not clean_start.must_restart({"PATH": "/bin", "PYTHONUNBUFFERED": "1"}, ["/usr/lib/python3.11"], safe=False)


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONHOME"])
def test_a_variable_that_loads_or_changes_code_restarts_once(name):
    environment = {name: "/somewhere"}
    assert clean_start.must_restart(environment, [], safe=True)
    assert not clean_start.must_restart(clean_start.clean_environment(environment), [], safe=True)


def test_a_current_folder_in_front_restarts_unless_the_path_is_safe(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert clean_start.must_restart({}, [str(tmp_path)], safe=False)
    assert clean_start.must_restart({}, [""], safe=False)
    assert not clean_start.must_restart({}, [str(tmp_path)], safe=True)


def test_the_import_path_is_handed_on_absolute_and_once(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = {"PYTHONPATH": f"lib{os.pathsep}/abs{os.pathsep}", clean_start.IMPORT_PATH: "/abs", "HOME": "/me"}
    after = clean_start.clean_environment(before)
    assert after == {"HOME": "/me", clean_start.IMPORT_PATH: f"{tmp_path}/lib{os.pathsep}/abs"}


def test_a_kit_installed_through_pythonpath_is_still_found(tmp_path):
    (tmp_path / "conformkit").mkdir()
    (tmp_path / "conformkit" / "cli").symlink_to(Path(clean_start.__file__).parent)
    environment = {"PYTHONPATH": str(tmp_path)}
    assert not clean_start.must_restart(environment, [], safe=True)
    assert clean_start.clean_environment({**environment, "PYTHONWARNINGS": "error"}) == environment


def test_the_new_process_gets_the_same_arguments_and_a_safe_path(monkeypatch):
    calls = []
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    clean_start.ensure(["run", "--impl", "a b"])
    ((program, command, environment),) = calls
    assert (program, command) == (
        sys.executable,
        [sys.executable, "-P", "-m", "conformkit.cli", "run", "--impl", "a b"],
    )
    assert environment[clean_start.IMPORT_PATH].split(os.pathsep)[0] == "/somewhere"
