import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.record import Grade, Submission, SubmissionOutcome
from conformkit.conformance.apps.grade.store import FILE, RunKey, StoreBroken, StoreDamaged, StoreUnusable, opened

KEY = RunKey("policy", 7)


def graded(name="anna", digest="1", points=1.0, outcome=SubmissionOutcome.JUDGED):
    return Grade(Submission(name, name, f"{name}.zip", digest), outcome, points=points, max_points=2.0)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_what_was_stored_is_there_next_time(out):
    with opened(out) as store:
        store.begin(KEY)
        store.add(graded(), KEY, {("configuration", "SDPA-SCALE"): True})
    with opened(out) as store:
        assert store.has(graded().submission, KEY)
        assert list(store.grades(["nobody", "anna"])) == [graded()]
        assert store.answers(KEY) == {("configuration", "SDPA-SCALE"): True}
        assert store.answers(RunKey("other", 7)) == {}


def test_another_content_policy_or_seed_is_another_result(out):
    with opened(out) as store:
        store.add(graded(), KEY, {})
        assert not store.has(graded(digest="2").submission, KEY)
        assert not store.has(graded().submission, RunKey("other", 7))
        assert not store.has(graded().submission, RunKey("policy", 8))


def test_a_changed_submission_supersedes_and_the_old_result_stays(out):
    with opened(out) as store:
        store.add(graded(points=1), KEY, {})
        store.add(graded(digest="2", points=2), KEY, {})
        assert [g.points for g in store.grades(["anna"])] == [2]
        assert store.has(graded().submission, KEY)
        assert [g.points for g in store.grades(["anna"])] == [1]
    rows = sqlite3.connect(out / FILE).execute("SELECT digest, superseded FROM result ORDER BY digest").fetchall()
    assert rows == [("1", 0), ("2", 1)]


def test_the_first_verdict_stays_and_a_failure_of_the_kit_is_none(out):
    with opened(out) as store:
        store.add(graded(outcome=SubmissionOutcome.KIT_FAILED, points=0), KEY, {})
        assert not store.has(graded().submission, KEY)
        store.add(graded(points=1), KEY, {})
        store.add(graded(points=2), KEY, {})
        store.add(graded(outcome=SubmissionOutcome.KIT_FAILED, points=0), KEY, {})
        assert [(g.points, g.outcome) for g in store.grades(["anna"])] == [(1, "judged")]


def test_submissions_that_went_away_are_named(out):
    with opened(out) as store:
        for name in ("anna", "ben"):
            store.add(graded(name), KEY, {})
        assert store.others(["ben"]) == ["anna"]


def test_a_hidden_seed_is_drawn_once_and_its_owner_s(out, tmp_path):
    with opened(out) as store:
        seed = store.seed()
    with opened(out) as store:
        assert store.seed() == seed
    assert (out / "seed").stat().st_mode & 0o777 == 0o600
    assert out.stat().st_mode & 0o777 == 0o700
    with opened(tmp_path / "other") as store:
        assert store.seed() != seed
    stored = b"".join(path.read_bytes() for path in out.iterdir() if path.name != "seed")
    assert str(seed).encode() not in stored


def test_a_damaged_seed_is_reported_and_not_drawn_again(out):
    with opened(out) as store:
        store.seed()
    for text in ("", "-5", "9" * 5000):
        (out / "seed").write_text(text)
        with opened(out) as store, pytest.raises(StoreUnusable, match="holds no seed"):
            store.seed()
    (out / "seed").unlink()
    os.mkfifo(out / "seed")
    with opened(out) as store, pytest.raises(StoreUnusable, match="it is not a file"):
        store.seed()


WRITER = """
import sys
from pathlib import Path
from conformkit.conformance.apps.grade.store import RunKey, opened
from conformkit.conformance.apps.grade.record import Grade, Outcome, Submission

with opened(Path(sys.argv[1])) as store:
    for n in range(100_000):
        grade = Grade(Submission(f"s{n}", f"s{n}", "x", "1"), Outcome.JUDGED, message="x" * 1500)
        store.add(grade, RunKey("policy", 7), {})
        print(n, flush=True)
"""


def test_a_run_killed_at_any_moment_loses_nothing_reported_as_stored(out):
    for after in (1, 40, 7):
        command = [sys.executable, "-P", "-c", WRITER, str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            said = -1
            for line in process.stdout:
                said = int(line)
                if said >= after:
                    process.send_signal(signal.SIGKILL)
        with opened(out) as store:
            found = store.grades([f"s{n}" for n in range(said + 1)])
            assert len(found) == said + 1
            assert all(grade.message == "x" * 1500 for grade in found)


def test_two_runs_on_one_folder_are_detected(out):
    words = rf"another run is grading .*\(process {os.getpid()}\)"
    with opened(out), pytest.raises(StoreUnusable, match=words), opened(out):
        pass
    with opened(out):
        pass


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version = 2", "a newer version of conform"),
        ("PRAGMA user_version = 0", "an older version of conform"),
        ("PRAGMA application_id = 1", "not written by conform grade"),
    ],
)
def test_a_file_of_another_version_or_program_is_refused_and_left_alone(out, statement, words):
    with opened(out) as store:
        store.add(graded(), KEY, {})
    connection = sqlite3.connect(out / FILE)
    connection.execute(statement)
    connection.close()
    before = (out / FILE).read_bytes()
    with pytest.raises(StoreUnusable, match=words), opened(out):
        pass
    assert (out / FILE).read_bytes() == before


def test_a_file_that_is_not_a_database_is_refused(out):
    out.mkdir()
    (out / FILE).write_bytes(b"hello" * 1000)
    with pytest.raises(StoreUnusable, match="not an SQLite file"), opened(out):
        pass
    assert (out / FILE).read_bytes() == b"hello" * 1000


def test_a_damaged_file_is_reported(out):
    with opened(out) as store:
        for n in range(200):
            store.add(graded(f"s{n}"), KEY, {})
    data = bytearray((out / FILE).read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (out / FILE).write_bytes(data)
    with pytest.raises(StoreDamaged, match="is damaged"), opened(out) as store:
        store.grades([f"s{n}" for n in range(200)])


def test_a_folder_of_something_else_is_refused(out):
    out.mkdir()
    (out / "thesis.tex").write_text("")
    with pytest.raises(StoreUnusable, match=r"holds other files, for example thesis\.tex"), opened(out):
        pass
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_a_place_that_is_none_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for place, words in ((tmp_path / "file", "is a file"), (tmp_path / "a" / "b", "does not exist; create it")):
        with pytest.raises(StoreUnusable, match=words), opened(place):
            pass


def refusal_of(folder):
    """Return what opening a folder raises for a user without rights, as text."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        said = "nothing"
        try:
            os.setuid(65534)
            with opened(folder):
                pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent looks at it
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    return said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_written_is_refused():
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        wanted = f"StoreUnusable: {place}/out cannot be written to: Permission denied; name another folder"
        assert refusal_of(Path(place, "out")) == wanted
        Path(place, "out").mkdir()
        assert refusal_of(Path(place, "out")) == wanted


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_the_user_may_not_write_is_refused(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(StoreUnusable, match="cannot be written to: Permission denied"), opened(tmp_path / "out"):
        pass


def test_a_full_disk_ends_a_run_with_what_is_stored_intact(out):
    stored = []

    def store_many(store):
        store._connection.execute("PRAGMA max_page_count = 40")
        for n in range(1000):
            store.add(graded(f"s{n}"), KEY, {})
            stored.append(f"s{n}")

    with pytest.raises(StoreBroken, match=r"the disk of .* is full"), opened(out) as store:
        store_many(store)
    with opened(out) as store:
        assert [grade.submission.id for grade in store.grades([f"s{n}" for n in range(1000)])] == stored
        store.add(graded("later"), KEY, {})


@pytest.mark.parametrize(
    "grade",
    ["x", "{}", "[1]", "null", "[" * 100_000, "{points}", "{groups}"],
    ids=["no JSON", "nothing in it", "a list", "null", "deep", "points that are no number", "a group that is none"],
)
def test_a_grade_written_by_another_user_is_reported_and_not_read(out, grade):
    with opened(out) as store:
        store.add(graded(), KEY, {})
    own = graded().as_object()
    grade = {
        "{points}": json.dumps({**own, "points": math.inf}), "{groups}": json.dumps({**own, "groups": [{"points": 1}]}),
    }.get(grade, grade)  # fmt: skip
    connection = sqlite3.connect(out / FILE)
    connection.execute("UPDATE result SET grade = ?", (grade,))
    connection.commit()
    connection.close()
    with opened(out) as store, pytest.raises(StoreDamaged, match="a grade of anna that conform grade did not write"):
        list(store.grades(["anna"]))
