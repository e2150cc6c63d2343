"""Control groups are created where this process may create one, and removed."""

import os
from pathlib import Path

import pytest

from conformkit.conformance.driver.sandbox import cgroups
from conformkit.conformance.driver.sandbox.cgroups import ControlGroup


def unified(folder, enabled):
    """A cgroup v2 group, imitated with plain files."""
    folder.mkdir(parents=True)
    (folder / "cgroup.subtree_control").write_text(enabled)
    (folder / "cgroup.procs").write_text("")
    return folder


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Pretend that the machine has these hierarchies, and this process these places in them."""

    def have(own, *mounts):
        monkeypatch.setattr(cgroups, "_own", lambda: own)
        monkeypatch.setattr(cgroups, "_mounts", lambda: iter(mounts))

    return have


def test_the_nearest_group_whose_children_are_counted_is_taken(machine, tmp_path):
    unified(tmp_path / "user", "cpu memory pids")
    unified(tmp_path / "user" / "app", "memory pids")
    unified(tmp_path / "user" / "app" / "scope", "")
    machine({"": "/user/app/scope"}, ("cgroup2", "/", tmp_path, set()))
    assert cgroups._parents() == {"unified": tmp_path / "user" / "app"}


@pytest.mark.parametrize("enabled", ["", "cpu io", "memory"])
def test_a_hierarchy_that_does_not_count_both_is_left_alone(machine, tmp_path, enabled):
    unified(tmp_path / "user", enabled)
    machine({"": "/user"}, ("cgroup2", "/", tmp_path, set()))
    assert ControlGroup.make(memory_bytes=1 << 30, processes=9) is None
    assert [path.name for path in (tmp_path / "user").iterdir() if path.is_dir()] == []


def test_a_group_above_the_mounted_ones_is_not_ours(machine, tmp_path):
    # in a container, the path in /proc/self/cgroup can lead out of what is mounted
    unified(tmp_path / "here", "memory pids")
    machine({"": "/elsewhere"}, ("cgroup2", "/container", tmp_path / "here", set()))
    assert cgroups._parents() == {"unified": tmp_path / "here"}


def test_controllers_of_the_first_version_are_taken_one_by_one(machine, tmp_path):
    for name in ("pids/own", "memory"):
        (tmp_path / name).mkdir(parents=True)
    mounts = [("cgroup", "/", tmp_path / name, {"rw", name}) for name in ("pids", "memory", "cpu")]
    machine({"pids": "/own", "memory": "/gone", "cpu": "/"}, *mounts)
    assert cgroups._parents() == {"pids": tmp_path / "pids" / "own"}


def test_limits_are_written_and_the_memory_of_swap_counts(machine, tmp_path):
    unified(tmp_path / "user", "memory pids")
    machine({"": "/user"}, ("cgroup2", "/", tmp_path, set()))
    group = ControlGroup.make(memory_bytes=1 << 30, processes=9)
    folder = group.folders["unified"]
    assert folder.parent == tmp_path / "user"
    files = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")}
    assert files == {"memory.max": str(1 << 30), "memory.swap.max": "0", "pids.max": "9"}
    assert group.add(1234)
    assert (folder / "cgroup.procs").read_text() == "1234"


def test_kills_for_memory_are_read_off(tmp_path):
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert ControlGroup({"unified": tmp_path}).kills_for_memory() == 2
    assert ControlGroup({"memory": tmp_path}).kills_for_memory() == 5
    assert ControlGroup({"pids": tmp_path}).kills_for_memory() == 0


def test_what_a_killed_harness_left_is_taken_away_and_nothing_else(tmp_path):
    for name in (f"conformkit-{os.getpid()}-0", "conformkit-999999999-3", "conformkit-x", "other"):
        (tmp_path / name).mkdir()
    cgroups._sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"conformkit-{os.getpid()}-0", "conformkit-x", "other"}


def test_this_machine_is_read_without_an_error():
    assert all(isinstance(folder, Path) for folder in cgroups._parents().values())
