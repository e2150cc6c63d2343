"""A package as it was in a revision of its git repository, laid out in a folder of its own."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

__all__ = ["NoRevision", "lay_out", "split"]

_SECONDS = 60


class NoRevision(LookupError):
    """There is no such revision, or nothing of that path in it; the text says which."""


def split(text: str) -> tuple[str, str]:
    """Return path and revision of `path@revision`; the revision is empty where a file or folder is called like that."""
    path, at, revision = text.rpartition("@")
    return (path, revision) if at and path and not Path(text).exists() else (text, "")


def lay_out(path: Path, revision: str, folder: Path) -> Path:
    """Write what the path held in that revision below the folder, and return where. Raises NoRevision."""
    if revision.startswith("-") or not revision:
        raise NoRevision(f"{revision!r} is no revision")
    home = next((parent for parent in path.resolve().parents if parent.is_dir()), Path())
    top = Path(os.fsdecode(_git(home, "rev-parse", "--show-toplevel")).strip())
    inside = path.resolve().relative_to(top.resolve())
    commit = _git(top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    beside = inside.parent / "conform.toml"
    names = [inside, *([beside] if _git(top, "ls-tree", commit, "--", str(beside)) else [])]
    archive = _git(top, "archive", "--format=tar", commit, "--", *(f":(literal,top){name}" for name in names))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / inside


def _git(folder: Path, *words: str) -> bytes:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 - git, no shell
    except FileNotFoundError:
        raise NoRevision("git is not installed, so no revision can be read; name a folder instead") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise NoRevision(f"git says: {said[-1] if said else 'nothing'}") from None
    except subprocess.TimeoutExpired:
        raise NoRevision(f"git did not answer in {_SECONDS} s") from None
    return done.stdout
