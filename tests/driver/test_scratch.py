"""What a killed run left in the folder for temporary files is removed by the next run, and nothing else."""

import os
import subprocess
import sys
import time

import pytest

from conformkit.conformance.driver.scratch import held_folder, remove
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

HOLDER = """
import time
from conformkit.conformance.driver.scratch import held_folder
with held_folder() as folder:
    print(folder.name, flush=True)
    time.sleep(600)
"""


def run_anything():
    with pytest.raises(LoadFailure):
        run(RunRequest("there_is_no_such_implementation"))


def test_what_a_killed_run_left_is_removed_by_the_next_run(temporary):
    # only grading did so, and only what grading had left: each killed run left copies in /tmp for ever
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        left = temporary / holder.stdout.readline().strip()
        (left / "witness").mkdir()
        run_anything()
        assert left.exists(), "it is still in use"
        holder.kill()
    run_anything()
    assert not list(temporary.iterdir())


def test_folders_of_users_with_such_a_name_stay(temporary):
    # what has no lock of ours is somebody's
    (temporary / "conform-reports").mkdir()
    (temporary / "conform-reports" / "report.json").touch()
    (temporary / "conform-file").touch()
    (temporary / "conform-empty").mkdir()
    (temporary / "conform-linked").symlink_to(temporary / "conform-reports")
    for name in ("conform-reports", "conform-file", "conform-empty"):
        os.utime(temporary / name, (time.time() - 3600,) * 2)
    before = {*temporary.iterdir()}
    run_anything()
    assert {*temporary.iterdir()} == before


def test_a_lock_that_is_a_link_holds_and_frees_nothing(temporary):
    (temporary / "elsewhere").touch()
    (temporary / "conform-x").mkdir()
    (temporary / "conform-x" / ".held").symlink_to(temporary / "elsewhere")
    run_anything()
    assert (temporary / "conform-x").exists()


def test_a_removed_folder_leaves_what_its_links_lead_to_alone(temporary):
    # permissions of a link are those of its target: a page for everybody became private
    public = temporary / "public"
    public.touch()
    public.chmod(0o644)
    with held_folder() as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "link").symlink_to(public)
        (folder / "closed").chmod(0o500)
    assert not folder.exists()
    assert public.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_became_a_link_is_removed_as_a_link(temporary):
    (temporary / "kept").mkdir()
    (temporary / "link").symlink_to(temporary / "kept")
    remove(temporary / "link")
    assert [path.name for path in temporary.iterdir()] == ["kept"]


def test_a_folder_that_is_gone_leaves_the_place_where_it_was_as_it_is(tmp_path):
    """Two runs may sweep at once; who comes second would close the folder of all temporary files to others."""
    tmp_path.chmod(0o755)
    remove(tmp_path / "gone")
    assert tmp_path.stat().st_mode & 0o777 == 0o755
