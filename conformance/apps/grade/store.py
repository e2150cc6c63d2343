"""Results on disk: one SQLite file, one transaction per result, one run at a time.

The key of a result: the submission's owner and content, the policy, the kit, the law and the seed. A stored result is
never judged again or lost, even if the run is killed. A changed submission is judged again; its earlier results stay,
marked as superseded.
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

from conformkit.conformance.apps.grade.database import (
    FILE,
    SEED,
    VERSION,
    StoreBroken,
    StoreDamaged,
    StoreUnusable,
    check_folder,
    connected,
    take,
    translated,
)
from conformkit.conformance.apps.grade.record import Grade, Submission, SubmissionOutcome
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["FILE", "VERSION", "RunKey", "Store", "StoreBroken", "StoreDamaged", "StoreUnusable", "opened"]

_LOCK = ".lock"


class RunKey:
    """What a grade depends on besides the submission itself. The seed is included only as a digest."""

    def __init__(self, policy: str, seed: int) -> None:
        self.policy, self.kit, self.spec = policy, kit_version(), SPEC_VERSION
        parts = [policy, self.kit, self.spec, hashlib.sha256(f"seed {seed}".encode()).hexdigest()]
        self.text = hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@contextmanager
def opened(out: Path) -> Iterator[Store]:
    """Open the results in a folder, creating it if necessary; other runs are locked out.

    Raises StoreUnusable, and StoreBroken if nothing more can be written.
    """
    check_folder(out)
    try:
        out.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(f"{out} cannot be written to: {error.strerror}; name another folder") from None
    try:
        take(lock, out)
        with translated(out), contextlib.closing(connected(out)) as connection:
            yield Store(out, connection)
    finally:
        os.close(lock)


class Store:
    """The results of an open folder."""

    def __init__(self, out: Path, connection: sqlite3.Connection) -> None:
        self._out, self._connection = out, connection

    def seed(self) -> int:
        """Return the hidden seed of this folder, drawn on first use."""
        path = self._out / SEED
        try:
            return _read_seed(path)
        except FileNotFoundError:
            return _drawn(path)
        except (OSError, ValueError) as error:
            raise StoreUnusable(f"{path} holds no seed ({error}); restore it, or name a new out folder") from None

    def begin(self, key: RunKey) -> None:
        """Store what the results of this run depend on."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO run VALUES (?, ?, ?, ?)", (key.text, key.policy, key.kit, key.spec)
            )

    def knows(self, submission: Submission, key: RunKey) -> bool:
        """Whether a submission has verdicts; changes nothing."""
        found = self._connection.execute(
            "SELECT outcome FROM result WHERE submission = ? AND digest = ? AND run = ?",
            (submission.id, submission.digest, key.text),
        ).fetchone()
        return found is not None and found[0] != SubmissionOutcome.KIT_FAILED

    def forget(self, submissions: Iterable[Submission], key: RunKey) -> None:
        """Let the next grade of these replace the stored one."""
        with self._transaction() as connection:
            for one in submissions:
                connection.execute(
                    "UPDATE result SET outcome = ? WHERE submission = ? AND digest = ? AND run = ?",
                    (SubmissionOutcome.KIT_FAILED, one.id, one.digest, key.text),
                )

    def has(self, submission: Submission, key: RunKey) -> bool:
        """Whether a submission is done; if so, this result counts from now on."""
        rows = self._connection.execute(
            "SELECT digest = ? AND run = ? AS this, outcome, superseded FROM result WHERE submission = ?",
            (submission.digest, key.text, submission.id),
        ).fetchall()
        found = next((row for row in rows if row[0]), None)
        if found is None or found[1] == SubmissionOutcome.KIT_FAILED:
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
        """Store a grade and what was learned with it, all or nothing. The first verdict on a submission stays."""
        who = grade.submission
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction() as connection:
            _supersede(connection, who, key)
            connection.execute(
                "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET outcome = excluded.outcome, "
                "grade = excluded.grade, finished = excluded.finished WHERE outcome = ?",
                (who.id, who.digest, key.text, grade.outcome, grade.as_json(), now, SubmissionOutcome.KIT_FAILED),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?)",
                [(key.text, *what, v) for what, v in answers.items()],
            )

    def rewrite(self, grade: Grade) -> None:
        """Replace the grade that counts by the same verdicts with other points."""
        who = grade.submission
        with self._transaction() as connection:
            connection.execute(
                "UPDATE result SET grade = ? WHERE submission = ? AND digest = ? AND NOT superseded",
                (grade.as_json(), who.id, who.digest),
            )

    def answers(self, key: RunKey) -> dict[tuple[str, str], bool]:
        """Return which clauses are known to apply, or not to apply, to the reference."""
        rows = self._connection.execute("SELECT configuration, clause, applies FROM answer WHERE run = ?", (key.text,))
        return {(configuration, clause): bool(applies) for configuration, clause, applies in rows}

    def grades(self, ids: Iterable[str]) -> Sequence[Grade]:
        """Return the grades that count, of these submissions, in this order; those not graded yet are missing.

        They are read on access: ten thousand reports do not fit into memory.
        """
        graded = {row[0] for row in self._connection.execute("SELECT submission FROM result WHERE NOT superseded")}
        return _Grades(self._connection, [identity for identity in ids if identity in graded])

    def others(self, ids: Iterable[str]) -> list[str]:
        """Return the submissions that have a grade here and are not in this list."""
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
    """Grades that stay on disk until they are accessed, one by one."""

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
        try:
            return Grade.from_object(json.loads(row[0]))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            sentence = f"{FILE} holds a grade of {self._ids[place]} that conform grade did not write"
            raise StoreDamaged(
                f"{sentence} ({type(error).__name__}); restore it from a copy, or name a new folder"
            ) from None


def _supersede(connection: sqlite3.Connection, submission: Submission, key: RunKey) -> None:
    connection.execute(
        "UPDATE result SET superseded = 1 WHERE submission = ? AND NOT superseded AND NOT (digest = ? AND run = ?)",
        (submission.id, submission.digest, key.text),
    )


def _read_seed(path: Path) -> int:
    """Return the seed in a file. Raises OSError, ValueError."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a file")
    seed = int(path.read_text(encoding="ascii"))
    if seed < 0:
        raise ValueError("it is below 0")
    return seed


def _drawn(path: Path) -> int:
    """Draw a seed and store it in a file that only its owner can read."""
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
