"""The SQLite file of results and its folder: locked against other runs; foreign folders and files are refused.

StoreUnusable     the folder cannot be used; nothing in it was changed
StoreBroken       nothing more can be written there; stored results are complete
└── StoreDamaged  the file was changed by something else
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "FILE", "SEED", "VERSION", "StoreBroken", "StoreDamaged", "StoreUnusable", "check_folder", "connected", "take",
    "translated",
]  # fmt: skip

FILE = "grades.sqlite"
VERSION = 1
"""Version of the tables. A file of another version is refused."""
_APPLICATION = 0x636F6E66
SEED = "seed"
_WAIT_SECONDS = 10.0

_TABLES = """
CREATE TABLE result (
    submission TEXT NOT NULL, digest TEXT NOT NULL, run TEXT NOT NULL, outcome TEXT NOT NULL, grade TEXT NOT NULL,
    finished TEXT NOT NULL, superseded INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (submission, digest, run)
) STRICT;
CREATE TABLE run (run TEXT PRIMARY KEY, policy TEXT NOT NULL, kit TEXT NOT NULL, spec TEXT NOT NULL) STRICT;
CREATE TABLE answer (
    run TEXT NOT NULL, configuration TEXT NOT NULL, clause TEXT NOT NULL, applies INTEGER NOT NULL,
    PRIMARY KEY (run, configuration, clause)
) STRICT;
"""


class StoreUnusable(ValueError):
    """The out folder cannot be used; the text says why and what to do. Nothing in it was changed."""


class StoreBroken(Exception):
    """Nothing more can be written there. Stored results are complete."""


class StoreDamaged(StoreBroken):
    """The file was changed by something else, and cannot be read to the end."""


def check_folder(out: Path) -> None:
    """Refuse, before anything is written, a folder with other files, and systems without file locks."""
    try:
        import fcntl  # noqa: F401, PLC0415
    except ImportError:
        raise StoreUnusable("grading needs a POSIX system, as its isolation does; on Windows use WSL") from None
    if out.exists() and not out.is_dir():
        raise StoreUnusable(f"{out} is a file; name a folder")
    if not out.parent.is_dir():
        raise StoreUnusable(f"the folder {out.parent} does not exist; create it with: mkdir -p {out.parent}")
    try:
        strangers = [path.name for path in out.iterdir() if not path.name.startswith(".")] if out.exists() else []
    except OSError as error:
        raise StoreUnusable(f"{out} cannot be listed: {error.strerror}") from None
    if strangers and not {FILE, SEED} & set(strangers):
        raise StoreUnusable(f"{out} holds other files, for example {min(strangers)}; name a new or an empty folder")


def take(lock: int, out: Path) -> None:
    """Lock the folder by an open file in it, until that is closed. Raises StoreUnusable if another run holds it."""
    import fcntl  # noqa: PLC0415 - see check_folder

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
        who = f" (process {holder})" if holder else ""
        raise StoreUnusable(f"another run is grading into {out}{who}; wait for it, or name another folder") from None
    with contextlib.suppress(OSError):  # a full disk: the lock works without the process id
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def connected(out: Path) -> sqlite3.Connection:
    """Open the file of results, or create it. Raises StoreUnusable, or errors that `translated` turns into text."""
    path = out / FILE
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        fresh = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not fresh:
            _check_file(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if fresh:
            _create(connection)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise StoreUnusable(f"{path} is not an SQLite file; name another folder") from None
        if _code(error) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
            raise StoreUnusable(f"{path} cannot be written to: {error}; name another folder") from None
        raise
    return connection


def _check_file(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise StoreUnusable(f"{path} was not written by conform grade; name another folder")
    if version != VERSION:
        made = "a newer" if version > VERSION else "an older"
        advice = "grade with that version, or into a new folder; nothing in it was changed"
        raise StoreUnusable(
            f"{path} was written by {made} version of conform (form {version}, expected {VERSION}); {advice}"
        )


def _create(connection: sqlite3.Connection) -> None:
    """Create the tables in one transaction: a run killed here leaves a file without tables, which is harmless."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


@contextmanager
def translated(out: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system about failed writes into a sentence."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_CORRUPT:
            raise StoreDamaged(
                f"{out / FILE} is damaged: {error}; restore it from a copy, or name a new folder"
            ) from None
        if _code(error) == sqlite3.SQLITE_FULL:
            raise StoreBroken(f"the disk of {out} is full") from None
        raise StoreBroken(f"{out / FILE} cannot be written to: {error}") from None


def _code(error: sqlite3.Error) -> int:
    """Return the primary code; SQLite puts details into the higher bits."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
