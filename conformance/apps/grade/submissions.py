"""Find the submissions in a folder, and pack each into bytes that a process on any machine can unpack.

Accepted are folders, archives, single files and git checkouts (only the work tree; git is not run). A folder that holds
only one archive, as learning platforms create them, counts as that archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.apps.grade.names import (
    ARCHIVES,
    OTHER_ARCHIVES,
    SINGLE_FILES,
    bare,
    identity,
    legible,
    same,
    twins,
)
from conformkit.conformance.apps.grade.policy import ArchiveLimits
from conformkit.conformance.apps.grade.record import Submission
from conformkit.conformance.apps.grade.unpack import Member, Plan, Refused, SubmissionError, Unreadable, is_junk
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.driver.spawn.usage import amount

__all__ = ["NothingToGrade", "Package", "SubmissionList", "SubmissionSource", "find", "pack"]


_EXPORTED = re.compile(r"_\d+_\d+_|_\d+_assignsubmission_|_attempt_\d{4}-\d\d")
"""What names of submissions have that Canvas, Moodle and Blackboard export."""


class NothingToGrade(ValueError):
    """The folder of submissions cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class SubmissionSource:
    """One submission, not read yet. `kind` is folder, zip, tar, file, or none if it is not supported."""

    id: str
    name: str
    source: str
    path: Path
    kind: str


@dataclass(frozen=True, slots=True)
class Package:
    """A submission as bytes, or the problem that prevents reading it."""

    submission: Submission
    kind: str
    data: bytes = field(repr=False)
    file: str = ""
    """The name of a single file."""
    notes: tuple[str, ...] = ()
    problem: SubmissionError | None = None


@dataclass(frozen=True, slots=True)
class SubmissionList:
    """The submissions in order of their names, and the other files in the folder."""

    found: tuple[SubmissionSource, ...]
    aside: tuple[str, ...]


def find(place: Path, *, single: bool = False) -> SubmissionList:
    """Look for submissions in a folder; `place` itself is one if it is a file, or `single`. Raises NothingToGrade."""
    if not place.exists():
        raise NothingToGrade(f"there is no folder {place}")
    if place.is_file() and not single:
        _check_is_one(place)
    if single or place.is_file():
        return SubmissionList(_named([(place.resolve().name, place, "")]), ())
    try:
        entries = sorted(place.iterdir(), key=lambda path: (same(path.name), path.name))
    except OSError as error:
        raise NothingToGrade(f"{place} cannot be listed: {error.strerror}") from None
    visible = [path for path in entries if not (path.name.startswith(".") or is_junk(path.name))]
    aside = [path for path in visible if not _may_be_one(path)]
    chosen = [path for path in visible if _may_be_one(path)]
    if not chosen:
        raise NothingToGrade(f"{place} holds no submissions: no folder, archive, notebook or Python file")
    return SubmissionList(_named([(path.name, path, path.name) for path in chosen]), tuple(path.name for path in aside))


def pack(found: SubmissionSource, limits: ArchiveLimits) -> Package:
    """Read a submission. One that cannot be read becomes a package with the problem."""
    submission = Submission(found.id, found.name, found.source, hashlib.sha256(b"").hexdigest())
    try:
        if found.kind == "none":
            raise Unreadable(_unknown(found.path))
        if found.kind == "folder":
            data, notes = _tarred(found.path, limits)
            kind = "tar"
        else:
            data, notes, kind = _content(found.path, limits), [], found.kind
    except SubmissionError as problem:
        return Package(submission, found.kind, b"", problem=problem)
    except OSError as error:
        return Package(submission, found.kind, b"", problem=Unreadable(f"it cannot be read: {error.strerror}"))
    digest = hashlib.sha256(kind.encode() + b"\0" + data).hexdigest()
    submission = Submission(found.id, found.name, found.source, digest)
    return Package(submission, kind, data, file=found.path.name if kind == "file" else "", notes=tuple(notes))


# --- finding ----------------------------------------------------------------------------------------------------------


def _check_is_one(place: Path) -> None:
    """Raise NothingToGrade if a file is what a platform exports of a whole class: an archive of submissions."""
    try:
        with zipfile.ZipFile(place) as archive:
            tops = {name.partition("/")[0] for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return  # no zip, or a broken one, which is told when it is read
    those = [top for top in tops if _EXPORTED.search(top) or bare(top)[1] in {*ARCHIVES, *OTHER_ARCHIVES}]
    if len(those) > 1:
        advice = f"unpack it, and name the folder: unzip {shown(place.name)} -d {shown(place.stem)}"
        raise NothingToGrade(f"{place} holds {len(those)} submissions; {advice}")


def _may_be_one(path: Path) -> bool:
    return path.is_symlink() or path.is_dir() or bool(bare(path.name)[1])


def _named(places: list[tuple[str, Path, str]]) -> tuple[SubmissionSource, ...]:
    """Give each its name and id. Raises NothingToGrade where two have the same."""
    names = [bare(name)[0] if not path.is_dir() else name for name, path, _ in places]
    for words in (names, list(map(identity, names))):
        for key in twins(words):
            clash = [str(path) for word, (_, path, _) in zip(words, places, strict=True) if same(word) == key]
            advice = "rename or remove one of them"
            raise NothingToGrade(f"{' and '.join(clash[:2])} would belong to the same student; {advice}")
    found = []
    for name, (_, path, source) in zip(names, places, strict=True):
        real, kind = _kind(path)
        inside = "" if real == path else f"/{real.name}"
        found.append(
            SubmissionSource(identity(name), legible(name), legible((source or path.name) + inside), real, kind)
        )
    return tuple(found)


def _kind(path: Path) -> tuple[Path, str]:
    """Return what to read, and as what."""
    if path.is_symlink():
        return path, "none"
    if path.is_dir():
        inner = _only_archive(path)
        return _kind(inner) if inner is not None else (path, "folder")
    end = bare(path.name)[1]
    if end in SINGLE_FILES:
        return path, "file"
    return path, ARCHIVES.get(end, "none")


def _only_archive(folder: Path) -> Path | None:
    """Return the archive if a folder holds nothing else."""
    try:
        inside = [path for path in folder.iterdir() if not (path.name.startswith(".") or is_junk(path.name))]
    except OSError:
        return None
    alone = len(inside) == 1 and inside[0].is_file() and not inside[0].is_symlink()
    return inside[0] if alone and bare(inside[0].name)[1] in {*ARCHIVES, *OTHER_ARCHIVES} else None


def _unknown(path: Path) -> str:
    if path.is_symlink():
        return "it is a link; replace it by the folder or file itself"
    return f"{bare(path.name)[1]} files are not supported; use a folder, .zip, .tar.gz, .py or .ipynb"


# --- reading ----------------------------------------------------------------------------------------------------------


def _content(path: Path, limits: ArchiveLimits) -> bytes:
    """Return the content of a file; refuse one that is not a plain file, or too long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(f"{shown(path.name)} is a device or a pipe; only files and folders are allowed")
        data = stream.read(limits.bytes + 1)
    if len(data) > limits.bytes:
        raise Refused(f"it is larger than {amount(limits.bytes)}")
    return data


def _tarred(folder: Path, limits: ArchiveLimits) -> tuple[bytes, list[str]]:
    """Pack a folder; the same content gives the same bytes. Links and files that are not part of it are left out."""
    plan = Plan(limits)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, path in _files(folder, limits.depth):
            place = plan.takes(member)
            if place is None:
                continue
            data = _content(path, limits)
            plan.spend(len(data))
            entry = tarfile.TarInfo(str(place))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue(), plan.notes


def _files(folder: Path, depth: int) -> Iterator[tuple[Member, Path]]:
    """Yield everything below a folder except folders, in order of names; links to folders are links.

    Raises Refused if folders are nested deeper than `depth`, even empty ones: `os.walk` is recursive.
    """

    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not is_junk(name))
        linked = [name for name in folders if Path(parent, name).is_symlink()]
        folders[:] = [name for name in folders if name not in linked]
        if folders and len(Path(parent).relative_to(folder).parts) >= depth:
            raise Refused(f"{shown(folders[0])} is more than {depth} folders deep")
        for name in sorted([*names, *linked]):
            path = Path(parent, name)
            yield Member(str(path.relative_to(folder)), _kind_of_file(path), path.lstat().st_size), path


def _kind_of_file(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "special"
