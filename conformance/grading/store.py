"""Results on disk: one SQLite file, one transaction a result, one run at a time.

A result's key is whose submission it is, its content, the policy, the kit, the law and the seed. A result that is there
is never judged again nor lost, whenever the run is killed. A submission that changed is judged anew; its earlier
results stay, marked as superseded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import overload

from conformkit.conformance.grading.record import Grade, Outcome, Submission
from conformkit.conformance.report.versions import SPEC_VERSION, kit_version

__all__ = ["FILE", "VERSION", "RunKey", "Store", "StoreBroken", "StoreDamaged", "StoreUnusable", "opened"]

FILE = "grades.sqlite"
VERSION = 1
"""Of the tables. A file of another one is refused."""
_APPLICATION = 0x636F6E66
_SEED = "seed"
_LOCK = ".lock"
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
    """Nothing more can be written there. What was stored is whole."""


class StoreDamaged(StoreBroken):
    """The file was changed by something else, and cannot be read to the end."""


class RunKey:
    """What a grade depends on beside the submission itself. The seed is in it as a digest only."""

    def __init__(self, policy: str, seed: int) -> None:
        self.policy, self.kit, self.spec = policy, kit_version(), SPEC_VERSION
        parts = [policy, self.kit, self.spec, hashlib.sha256(f"seed {seed}".encode()).hexdigest()]
        self.text = hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@contextmanager
def opened(out: Path) -> Iterator[Store]:
    """Open the results in a folder, making it if need be; nobody else can meanwhile.

    Raises StoreUnusable, and StoreBroken where nothing more can be written.
    """
    try:
        import fcntl  # noqa: F401, PLC0415 - what keeps two runs apart
    except ImportError:
        raise StoreUnusable("grading needs a POSIX system, as its isolation does; on Windows use WSL") from None
    _check(out)
    try:
        out.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(f"{out} cannot be written to: {error.strerror}; name another folder") from None
    try:
        _take(lock, out)
        with _translated(out), contextlib.closing(_connected(out)) as connection:
            yield Store(out, connection)
    finally:
        os.close(lock)


class Store:
    """The results of an open folder."""

    def __init__(self, out: Path, connection: sqlite3.Connection) -> None:
        self._out, self._connection = out, connection

    def seed(self) -> int:
        """Return the secret seed of this folder, drawn when it is first asked for."""
        path = self._out / _SEED
        try:
            return int(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return _drawn(path)
        except (OSError, ValueError) as error:
            raise StoreUnusable(f"{path} holds no seed ({error}); restore it, or name a new out folder") from None

    def begin(self, key: RunKey) -> None:
        """Note what the results of this run depend on."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO run VALUES (?, ?, ?, ?)", (key.text, key.policy, key.kit, key.spec)
            )

    def has(self, submission: Submission, key: RunKey) -> bool:
        """Whether a submission is done; if so, this result is the one that counts from now on."""
        rows = self._connection.execute(
            "SELECT digest = ? AND run = ? AS this, outcome, superseded FROM result WHERE submission = ?",
            (submission.digest, key.text, submission.id),
        ).fetchall()
        found = next((row for row in rows if row[0]), None)
        if found is None or found[1] == Outcome.KIT_FAILED:
            return False
        if found[2] or any(not superseded for this, _, superseded in rows if not this):
            with self._transaction() as connection:
                _supersede(connection, submission, key)
                connection.execute(
                    "UPDATE result SET superseded = 0 WHERE submission = ? AND digest = ? AND run = ?",
                    (submission.id, submission.digest, key.text),
                )
        return True

    def add(self, grade: Grade, key: RunKey, answers: dict[tuple[str, str], bool]) -> None:
        """Store a grade and what was learned meanwhile, all or nothing. The first verdict on a submission stays."""
        who = grade.submission
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction() as connection:
            _supersede(connection, who, key)
            connection.execute(
                "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET outcome = excluded.outcome, "
                "grade = excluded.grade, finished = excluded.finished WHERE outcome = ?",
                (who.id, who.digest, key.text, grade.outcome, grade.as_json(), now, Outcome.KIT_FAILED),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?)",
                [(key.text, *what, v) for what, v in answers.items()],
            )

    def answers(self, key: RunKey) -> dict[tuple[str, str], bool]:
        """Return which clauses apply to the reference, as far as is known."""
        rows = self._connection.execute("SELECT configuration, clause, applies FROM answer WHERE run = ?", (key.text,))
        return {(configuration, clause): bool(applies) for configuration, clause, applies in rows}

    def grades(self, ids: Iterable[str]) -> Sequence[Grade]:
        """Return the grades that count, of these submissions, in this order; those not graded yet are missing.

        They are read when they are looked at: ten thousand reports are more than memory holds.
        """
        graded = {row[0] for row in self._connection.execute("SELECT submission FROM result WHERE NOT superseded")}
        return _Grades(self._connection, [identity for identity in ids if identity in graded])

    def others(self, ids: Iterable[str]) -> list[str]:
        """Return the submissions that have a grade here and are none of these."""
        rows = self._connection.execute(
            "SELECT DISTINCT submission FROM result WHERE NOT superseded ORDER BY submission"
        )
        known = set(ids)
        return [row[0] for row in rows if row[0] not in known]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise


class _Grades(Sequence[Grade]):
    """Grades that stay on disk until they are looked at, one by one."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        self._connection, self._ids = connection, ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> Grade: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Grade]: ...
    def __getitem__(self, place: int | slice) -> Grade | Sequence[Grade]:
        if isinstance(place, slice):
            return _Grades(self._connection, self._ids[place])
        row = self._connection.execute(
            "SELECT grade FROM result WHERE submission = ? AND NOT superseded", (self._ids[place],)
        ).fetchone()
        return Grade.from_object(json.loads(row[0]))


def _supersede(connection: sqlite3.Connection, submission: Submission, key: RunKey) -> None:
    connection.execute(
        "UPDATE result SET superseded = 1 WHERE submission = ? AND NOT superseded AND NOT (digest = ? AND run = ?)",
        (submission.id, submission.digest, key.text),
    )


def _drawn(path: Path) -> int:
    """Draw a seed and keep it where only its owner reads it."""
    seed = secrets.randbits(63)
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(f"{seed}\n")
        stream.flush()
        os.fsync(descriptor)
    draft.replace(path)
    return seed


# --- opening ----------------------------------------------------------------------------------------------------------


def _check(out: Path) -> None:
    """Refuse, before anything is written, what is no folder of results."""
    if out.exists() and not out.is_dir():
        raise StoreUnusable(f"{out} is a file; name a folder")
    if not out.parent.is_dir():
        raise StoreUnusable(f"the folder {out.parent} does not exist; create it with: mkdir -p {out.parent}")
    try:
        strangers = [path.name for path in out.iterdir() if not path.name.startswith(".")] if out.exists() else []
    except OSError as error:
        raise StoreUnusable(f"{out} cannot be listed: {error.strerror}") from None
    if strangers and not {FILE, _SEED} & set(strangers):
        raise StoreUnusable(f"{out} holds other files, {min(strangers)} for one; name a new or an empty folder")


def _take(lock: int, out: Path) -> None:
    import fcntl  # noqa: PLC0415 - see opened

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
        who = f" (process {holder})" if holder else ""
        raise StoreUnusable(f"another run is grading into {out}{who}; wait for it, or name another folder") from None
    with contextlib.suppress(OSError):  # a full disk: what it is for works without
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _connected(out: Path) -> sqlite3.Connection:
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
            raise StoreUnusable(f"{path} is no SQLite file; name another folder") from None
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
            f"{path} was written by {made} version of conform (form {version}, want {VERSION}); {advice}"
        )


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables in one transaction: a run killed now leaves a file without any, which is as good as none."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


@contextmanager
def _translated(out: Path) -> Iterator[None]:
    """Turn what SQLite and the system say when nothing more can be written into a sentence."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_CORRUPT:
            raise StoreDamaged(
                f"{out / FILE} is damaged: {error}; restore it from a copy, or name a new folder"
            ) from None
        if _code(error) == sqlite3.SQLITE_FULL:
            raise StoreBroken(f"the disk that {out} is on is full") from None
        raise StoreBroken(f"{out / FILE} cannot be written to: {error}") from None


def _code(error: sqlite3.Error) -> int:
    """Return the primary code: what else SQLite tells stands in the higher bits."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
