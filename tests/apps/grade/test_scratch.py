"""What a killed grader left in the folder for temporary files is removed by the next one, and nothing else."""

import os
import subprocess
import sys
import time

from conformkit.conformance.apps.grade.scratch import held_folder

HOLDER = """
import time
from conformkit.conformance.apps.grade.scratch import held_folder
with held_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def aged(folder):
    os.utime(folder, (time.time() - 3600,) * 2)


def test_what_a_killed_grader_left_is_removed_whatever_it_graded(temporary):
    # only the same out folder was looked at, and another class left its files for ever
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        left = temporary / holder.stdout.readline().strip()
        (left / "submission").mkdir()
        (left / "submission").chmod(0)
        with held_folder():
            assert left.exists(), "it is still in use"
        holder.kill()
    with held_folder() as own:
        assert not left.exists()
        assert list(temporary.iterdir()) == [own]
    assert not list(temporary.iterdir())


def test_links_and_what_others_are_making_stay(temporary):
    (temporary / "mine").mkdir()
    (temporary / "conform-grade-link").symlink_to(temporary / "mine")
    (temporary / "conform-grade-new").mkdir()
    (temporary / "conform-grade-old").mkdir()
    (temporary / "conform-grade-old" / ".new").touch()
    aged(temporary / "conform-grade-old")
    with held_folder():
        assert {path.name for path in temporary.iterdir()} >= {"mine", "conform-grade-link", "conform-grade-new"}
        assert not (temporary / "conform-grade-old").exists()
