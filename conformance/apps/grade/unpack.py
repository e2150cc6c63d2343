"""Unpack untrusted archives: nothing outside the folder, only plain files, no more than the limits allow.

SubmissionError
├── Unreadable     it is broken, or of a kind that cannot be read; an honest mistake
└── Refused        it breaks a rule that no honest archive breaks, or exceeds a limit
"""

from __future__ import annotations

import errno
import gzip
import io
import stat
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from conformkit.conformance.apps.grade.policy import ArchiveLimits
from conformkit.conformance.apps.grade.record import SubmissionOutcome
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.driver.spawn.usage import amount

__all__ = ["Member", "Plan", "Refused", "SubmissionError", "Unreadable", "is_junk", "unpack"]

_JUNK = frozenset(
    {
        "__MACOSX", "__pycache__", ".git", ".hg", ".svn", ".venv", "venv", "site-packages", ".tox", "node_modules",
        ".ipynb_checkpoints", ".idea", ".vscode", ".DS_Store", "Thumbs.db", "desktop.ini", ".mypy_cache",
        ".pytest_cache", ".ruff_cache", "Icon\r",
    }
)  # fmt: skip
"""Files that are not part of a submission: caches, version control, leftovers of operating systems."""
_SMALL = 1 << 20
"""The ratio is only checked for archives that become larger than this."""
_CHUNK = 1 << 16
_ENTRY = b"PK\x01\x02"
_END = b"PK\x05\x06"
_MARK = 4
"""Bytes before the first entry that only say that the archive was to be split."""
_FOLDER = 0x10
"""The attribute by which Windows marks folders."""
_ENTRIES_PER_FILE = 50
_LONGEST_NAME = 400
_LONGEST_PART = 200
_HARMFUL = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that end a line, or change the direction of text."""
_NOT_ITS_FAULT = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)  # fmt: skip


class SubmissionError(Exception):
    """A submission that cannot be judged; the text is a sentence for its author."""

    outcome = SubmissionOutcome.UNREADABLE


class Unreadable(SubmissionError):
    """It is broken, or of a kind that cannot be read."""


class Refused(SubmissionError):
    """It breaks a rule that no honest submission breaks, or a limit of the policy."""

    outcome = SubmissionOutcome.REFUSED


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive or a folder, other than a folder. `kind` is file, link or special."""

    name: str
    kind: str
    size: int


_Entry = tuple[Member, Callable[[], IO[bytes]]]
"""A member, and how to open it."""


class Plan:
    """Decides for each member whether to take it, leave it out, or stop. `notes` say what was left out."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self.notes: list[str] = []
        self._limits = limits
        self._taken: dict[str, str] = {}
        self._folders: set[str] = set()
        self._bytes = 0

    def takes(self, member: Member) -> PurePosixPath | None:
        """Return the target of a member, or None if it is left out. Raises Refused."""
        path = _inside(member.name)
        if not path.parts or any(map(is_junk, path.parts)):
            return None
        _check_name(member.name, path, self._limits)
        if member.kind == "special":
            raise Refused(f"{shown(member.name)} is a device or a pipe; only files and folders are allowed")
        if member.kind == "link":
            self.notes.append(f"{shown(member.name)} is a link and was left out")
            return None
        self._count(path, member)
        return path

    def spend(self, size: int) -> None:
        """Count bytes that were actually unpacked. Raises Refused."""
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise Refused(f"unpacked it is larger than {amount(self._limits.bytes)}")

    def _count(self, path: PurePosixPath, member: Member) -> None:
        key = _key(path)
        if key in self._taken or key in self._folders:
            other = shown(self._taken.get(key, str(path)))
            raise Refused(f"{shown(member.name)} and {other} are the same file on systems that ignore case")
        above = [_key(parent) for parent in path.parents]
        clash = next((folder for folder in above if folder in self._taken), None)
        if clash is not None:
            raise Refused(f"{shown(self._taken[clash])} is both a file and a folder")
        self._folders.update(above)
        self._taken[key] = str(path)
        if len(self._taken) > self._limits.files:
            raise Refused(f"it has more than {self._limits.files} files")
        if member.size > self._limits.bytes:
            raise Refused(f"unpacked it is larger than {amount(self._limits.bytes)}")


def unpack(data: bytes, kind: str, name: str, target: Path, limits: ArchiveLimits) -> list[str]:
    """Write a submission into an existing empty folder; return notes on what was left out.

    `kind` is file (written as `name`), zip or tar. Raises SubmissionError.
    """
    plan = Plan(limits)
    if kind == "file":
        entries: Iterator[_Entry] = iter([(Member(name, "file", len(data)), lambda: io.BytesIO(data))])
    else:
        entries = _zipped(data, limits) if kind == "zip" else _tarred(data, limits)
    try:
        for member, opened in entries:
            place = plan.takes(member)
            if place is not None:
                _write(opened, target / place, plan)
    except SubmissionError:
        raise
    except Exception as error:  # the readers of archives raise whatever Python raises on a strange number
        if getattr(error, "errno", None) in _NOT_ITS_FAULT:
            raise
        raise Unreadable(f"the archive cannot be read: {_reason(error)}") from None
    for folder in (target, *target.rglob("*")):
        if folder.is_dir():
            folder.chmod(0o755)
    return plan.notes


def is_junk(name: str) -> bool:
    """Whether a file or folder of this name is not part of the submission."""
    return name in _JUNK or name.startswith("._")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "a name in it is not valid text"
    if isinstance(error, ValueError | ArithmeticError | LookupError | struct.error):
        return "a number in its table of contents is out of range"
    return shown(error, 200)[1:-1]


def _write(opened: Callable[[], IO[bytes]], place: Path, plan: Plan) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with opened() as source, place.open("xb") as copy:
        while chunk := source.read(_CHUNK):
            plan.spend(len(chunk))
            copy.write(chunk)
    place.chmod(0o644)  # whatever the archive and the umask say: a sandbox runs as another user


def _inside(name: str) -> PurePosixPath:
    """Return the path of a member's name; that of the root itself has no parts. Raises Refused."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise Refused(f"{shown(name)} leads out of the archive")
    return path


def _check_name(name: str, path: PurePosixPath, limits: ArchiveLimits) -> None:
    if any(c in _HARMFUL or unicodedata.category(c) in {"Cc", "Cs"} for c in name):
        raise Refused(f"{shown(name)} has a control character in its name")
    if len(path.parts) > limits.depth:
        raise Refused(f"{shown(name)} is more than {limits.depth} folders deep")
    if len(name.encode()) > _LONGEST_NAME or any(len(part.encode()) > _LONGEST_PART for part in path.parts):
        raise Refused(f"{shown(name)} is too long for a file name")


def _key(path: PurePosixPath) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


# --- zip --------------------------------------------------------------------------------------------------------------


def _zipped(data: bytes, limits: ArchiveLimits) -> Iterator[_Entry]:
    """Yield the members of a zip, after checking its declared sizes."""
    if data.count(_ENTRY) > limits.files * _ENTRIES_PER_FILE:
        raise Refused(f"it has more than {limits.files} files")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        first = min((entry.header_offset for entry in archive.infolist()), default=0)
        if _MARK < first < len(data) or _END in archive.comment:
            raise Refused("it has something before its first entry, or an archive in its comment; pack it again")
        entries = [entry for entry in archive.infolist() if not _is_folder(entry)]
        _check_ratio(sum(entry.file_size for entry in entries), len(data), limits)
        for entry in entries:
            if entry.flag_bits & 1:
                raise Unreadable("the archive is encrypted")
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise Unreadable("the archive is compressed in an unusual way; create it with zip or zipfile")
            yield Member(entry.orig_filename, _zip_kind(entry), entry.file_size), partial(archive.open, entry)


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry only says that there is a folder, as each tool that packs whole folders writes it.

    Not `entry.is_dir()`: it knows no backslash and no attributes, and looks at the name up to a NUL only.
    """
    marked = entry.external_attr & _FOLDER or stat.S_ISDIR(entry.external_attr >> 16)
    return entry.orig_filename.endswith(("/", "\\")) or (bool(marked) and not entry.file_size)


def _zip_kind(entry: zipfile.ZipInfo) -> str:
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_IFMT(mode) in {0, stat.S_IFREG} else "special"


def _check_ratio(unpacked: int, packed: int, limits: ArchiveLimits) -> None:
    if unpacked > max(_SMALL, limits.ratio * packed):
        raise Refused(f"unpacked it is more than {limits.ratio} times larger")


# --- tar --------------------------------------------------------------------------------------------------------------


def _tarred(data: bytes, limits: ArchiveLimits) -> Iterator[_Entry]:
    """Yield the members of a tar with any compression, reading it once from front to back."""
    entries = 0
    with tarfile.open(fileobj=_Bounded(data, limits), mode="r|") as archive:  # type: ignore[call-overload]
        for entry in archive:
            entries += 1
            if entries > limits.files * _ENTRIES_PER_FILE:
                raise Refused(f"it has more than {limits.files} files")
            if not entry.isdir():
                yield Member(entry.name, _tar_kind(entry), entry.size), partial(_content, archive, entry)


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(entry)
    if stream is None:
        raise Unreadable(f"{shown(entry.name)} has no content")
    return stream


def _tar_kind(entry: tarfile.TarInfo) -> str:
    if entry.issym() or entry.islnk():
        return "link"
    return "file" if entry.isreg() else "special"


class _Bounded:
    """The bytes of a tar, decompressed on demand, up to a limit that stops archive bombs."""

    def __init__(self, data: bytes, limits: ArchiveLimits) -> None:
        self._stream = _decompressed(data)
        self._packed, self._limits = len(data), limits
        self._read = 0

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        chunk = self._stream.read(size)
        self._read += len(chunk)
        _check_ratio(self._read, self._packed, self._limits)
        if self._read > 2 * self._limits.bytes:
            raise Refused(f"unpacked it is larger than {amount(self._limits.bytes)}")
        return chunk


def _decompressed(data: bytes) -> IO[bytes]:
    raw = io.BytesIO(data)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if data.startswith(b"\x1f\x8b") else raw
