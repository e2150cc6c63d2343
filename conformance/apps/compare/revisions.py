"""A package at a revision of its git repository, written into a separate folder.

The repository may be foreign, and the user's own settings name commands, too: filters that git runs on files it writes,
signatures that it checks, remotes for missing objects. So the revision is read, not checked out: its objects as bytes.
"""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath

from conformkit.conformance.apps.compare.blobs import Blobs, NoRevision, blobs_of, entries_of

__all__ = ["NoRevision", "lay_out", "split"]

_SECONDS = 60
_DEPTH = 50
_LONGEST_LINK = 4096
_KINDS = {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}
"""Of entries: not other repositories within this one."""
_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
_NOTHING_ASKED = ("-c", "core.fsmonitor=false")


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
    commit = _commit(top, revision)
    objects = (top / os.fsdecode(_git(top, "rev-parse", "--git-path", "objects")).strip()).resolve()
    form = _git(top, "rev-parse", "--show-object-format").decode().strip()
    with blobs_of(objects, form) as blobs:
        writer = _TreeWriter(blobs, commit)
        if not writer.write(inside, folder):
            raise NoRevision(f"{path} is not in that revision")
        writer.write(inside.parent / "conform.toml", folder)
    return folder / inside


@dataclass(frozen=True, slots=True)
class _TreeWriter:
    """Writes what a commit holds. Links are followed once, to a file of the same commit; others are left out."""

    blobs: Blobs
    commit: str

    def write(self, inside: PurePath, folder: Path) -> bool:
        """Write what stands under a path, and return whether something does."""
        found = self.blobs.read(f"{self.commit}:{'' if inside == PurePath() else inside.as_posix()}")
        if found is not None and found[0] == "blob":
            _put(folder / inside, found[1])
        elif found is not None and found[0] == "tree":
            self._tree(found[1], inside, folder, 0)
        return found is not None

    def _tree(self, tree: bytes, inside: PurePath, folder: Path, depth: int) -> None:
        if depth > _DEPTH:
            raise NoRevision(f"its folders are nested more than {_DEPTH} deep at that revision")
        (folder / inside).mkdir(parents=True, exist_ok=True)
        for entry in entries_of(tree, len(self.commit) // 2):
            place, kind = inside / entry.name, stat.S_IFMT(entry.mode)
            if entry.name.lower() == ".git" or kind not in _KINDS:
                continue
            found = self.blobs.read(entry.id)
            if found is None:
                raise NoRevision(f"{place} is not in the repository: was only a part of it fetched?")
            if kind == stat.S_IFDIR and found[0] == "tree":
                self._tree(found[1], place, folder, depth + 1)
            elif kind == stat.S_IFREG and found[0] == "blob":
                _put(folder / place, found[1])
            elif kind == stat.S_IFLNK and (target := self._target(inside, found[1])) is not None:
                _put(folder / place, target)

    def _target(self, inside: PurePath, link: bytes) -> bytes | None:
        """Return the content of the file that a link names, if it is one of the same commit."""
        named = os.path.normpath(inside / os.fsdecode(link)) if len(link) < _LONGEST_LINK and link else ".."
        if named.startswith(("..", "/")):
            return None
        found = self.blobs.read(f"{self.commit}:{named}")
        return found[1] if found is not None and found[0] == "blob" else None


def _commit(top: Path, revision: str) -> str:
    try:
        return _git(top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    except NoRevision as error:
        sentence = f"the repository {top} has no revision {revision!r}; name a branch, a tag or a commit ({error})"
        raise NoRevision(sentence) from None


def _put(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with place.open("xb") as stream:
            stream.write(content)
    except FileExistsError:
        raise NoRevision(f"it holds {place.name} twice at that revision") from None


def _git(folder: Path, *words: str) -> bytes:
    """Ask git about the repository: these questions run nothing that is configured."""
    command = ["git", *_NOTHING_ASKED, "-C", str(folder), *words]
    variables = {**os.environ, **_NOTHING_FETCHED}
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
