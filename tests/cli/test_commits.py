"""Commits since a revision have a short subject, and a body that says why."""

import os
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / ".ci" / "commits"
NAMED = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder, *words):
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **NAMED, **alone}, capture_output=True)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Short\n\nIt was too long.", ""),
        ("x" * 72 + "\n\nBecause.", ""),
        ("é" * 72 + "\n\nBecause.", ""),
        ("x" * 73 + "\n\nBecause.", "more than 72 characters"),
        ("Short", "the body is empty"),
    ],
    ids=["good", "just-fits", "letters-not-bytes", "long-subject", "no-body"],
)
def test_a_commit_says_what_in_72_characters_and_why(tmp_path, message, told):
    """Would break if the rule of CONTRIBUTING were one that nobody is told about: 208 of 954 subjects were longer."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "y" * 99)  # what came before the base counts no more
    git(tmp_path, "tag", "base")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", message)
    done = subprocess.run([CHECK, "base"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stderr) == (bool(told), True)
