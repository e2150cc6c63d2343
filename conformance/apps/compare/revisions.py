"""A package at a revision of its git repository, written into a separate folder.

The repository may be foreign. Its settings can name commands: filters that git runs on files it writes, or remotes for
missing objects. So its objects are read from an empty repository of our own, and nothing is fetched.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from conformkit.conformance.driver.scratch import held_folder

__all__ = ["NoRevision", "lay_out", "split"]

_SECONDS = 60
_MOST_BYTES = 256 << 20
_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
_NOTHING_ASKED = ("-c", "core.fsmonitor=false")


class NoRevision(LookupError):
    """There is no such revision, or it does not contain that path; the text says which."""


def split(text: str) -> tuple[str, str]:
    """Return path and revision of `path@revision`; the revision is empty if a file or folder has that whole name."""
    path, at, revision = text.rpartition("@")
    return (path, revision) if at and path and not Path(text).exists() else (text, "")


def lay_out(path: Path, revision: str, folder: Path) -> Path:
    """Write the path's content in that revision below the folder, and return where. Raises NoRevision."""
    if revision.startswith("-") or not revision:
        raise NoRevision(f"{revision!r} is not a revision")
    home = next((parent for parent in path.resolve().parents if parent.is_dir()), Path())
    top = Path(os.fsdecode(_git(home, "rev-parse", "--show-toplevel")).strip())
    if not path.resolve().is_relative_to(top.resolve()):
        raise NoRevision(f"the repository says that its files are in {top}, where {path} is not")
    inside = path.resolve().relative_to(top.resolve())
    commit = _git(top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    beside = inside.parent / "conform.toml"
    names = [inside, *([beside] if _git(top, "ls-tree", commit, "--", str(beside)) else [])]
    _check_size(top, commit, names)
    with tarfile.open(fileobj=io.BytesIO(_archived(top, commit, names))) as tar:
        tar.extractall(folder, filter=_inside)  # noqa: S202 - the filter is there
    return folder / inside


def _check_size(top: Path, commit: str, names: Sequence[PurePath]) -> None:
    """Refuse content that would fill memory: a file of zeros takes no space in a repository."""
    listed = _git(top, "ls-tree", "-r", "-l", "-z", commit, "--", *map(str, names))
    sizes = [entry.partition(b"\t")[0].split()[-1] for entry in listed.split(b"\0") if entry]
    total = sum(int(size) for size in sizes if size.isdigit())
    if total > _MOST_BYTES:
        raise NoRevision(f"{names[0]} holds {total >> 20} MiB at that revision, the limit is {_MOST_BYTES >> 20} MiB")


def _archived(top: Path, commit: str, names: Sequence[PurePath]) -> bytes:
    """Return a tar archive of a commit's content under these names."""
    objects = top / os.fsdecode(_git(top, "rev-parse", "--git-path", "objects")).strip()
    form = _git(top, "rev-parse", "--show-object-format").decode().strip()
    with held_folder() as own:
        _git(own, "init", "--bare", "--quiet", "--template=", f"--object-format={form}", str(own))
        wanted = (f":(literal,top){name}" for name in names)
        theirs = {"GIT_DIR": str(own), "GIT_OBJECT_DIRECTORY": str(objects.resolve())}
        return _git(own, "archive", "--format=tar", commit, "--", *wanted, more=theirs)


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Leave out links that lead out of the folder: their targets are missing too."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _git(folder: Path, *words: str, more: Mapping[str, str] | None = None) -> bytes:
    command = ["git", *_NOTHING_ASKED, "-C", str(folder), *words]
    variables = {**os.environ, **_NOTHING_FETCHED, **(more or {})}
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS, env=variables)  # noqa: S603 - git, no shell
    except FileNotFoundError:
        raise NoRevision("git is not installed, so no revision can be read; name a folder instead") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise NoRevision(f"git says: {said[-1] if said else 'nothing'}") from None
    except subprocess.TimeoutExpired:
        raise NoRevision(f"git did not answer in {_SECONDS} s") from None
    return done.stdout
