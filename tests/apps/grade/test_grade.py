"""A class of eight, half of them without a solution, from folder to folder."""

import csv
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from conformkit.conformance.apps.grade import executor
from conformkit.conformance.apps.grade.assess import Finished, ungraded
from conformkit.conformance.apps.grade.course import CourseError
from conformkit.conformance.apps.grade.grade import GradeRequest, grade, planned
from conformkit.conformance.apps.grade.harness import HarnessDied, NoRoom
from conformkit.conformance.apps.grade.policy import CoursePolicy
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome, schema
from conformkit.conformance.apps.grade.store import FILE, StoreBroken, StoreUnusable
from conformkit.conformance.report.json_report import schema as report_schema

from .conftest import ATTENTION, POLICY, UNSCALED, zipped

ROOT = Path(__file__).resolve().parents[3]
CLASS = {
    "anna": {"solution.py": ATTENTION, "helpers.py": "x = 1\n"},
    "ben__zip": zipped(("hw/solution.py", UNSCALED), ("__MACOSX/hw/._solution.py", "x")),
    "carl__py": "raise ValueError('not today')\n",
    "dora__zip": zipped(("../../dora.py", ATTENTION)),
    "eve__py": "import os\nos._exit(0)\n",
    "fred__zip": b"PK and then nothing",
    "gina__py": ATTENTION.replace("    scores", "    __import__('os')._exit(0)\n    scores", 1),
    "hugo__py": "# nothing yet\n",
}  # fmt: skip
WANTED = {
    "anna": ("judged", 10), "ben": ("judged", 5), "carl": ("not loaded", 0), "dora": ("refused", 0),
    "eve": ("not loaded", 0), "fred": ("unreadable", 0), "gina": ("judged", 0), "hugo": ("not loaded", 0),
}  # fmt: skip


@pytest.fixture
def run(tmp_path, policy):
    """Grade a folder in this process."""

    def call(folder, tell=lambda _: None, **options):
        options.setdefault("policy", policy())
        return grade(GradeRequest(folder, out=tmp_path / "out", **options), tell)

    return call


def stored(out):
    """Return the grades in an out folder, with their reports."""
    connection = sqlite3.connect(out / FILE)
    rows = connection.execute("SELECT grade FROM result WHERE NOT superseded").fetchall()
    connection.close()
    return [Grade.from_object(json.loads(text)) for (text,) in rows]


def told(grades):
    """Return what must not depend on interruptions of a run."""
    found = {}
    for item in grades:
        value = item.as_object()
        value.pop("seconds")
        for part in [value["report"] or {}, *(value["report"] or {}).get("clauses", ())]:
            part.pop("seconds", None)
        found[item.submission.id] = value
    return found


def test_every_submission_has_its_outcome_and_its_points(run, submissions, tmp_path):
    seen = []
    summary = run(submissions(**CLASS), seen.append, workers=2)
    found = {g.submission.id: (g.outcome.value, pytest.approx(g.points)) for g in summary.grades}
    assert found == WANTED
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 8, 8)
    assert {name for now in seen for name in now.running} <= set(WANTED)
    assert {p.stem for p in (tmp_path / "out" / "logs").iterdir()} == set(WANTED)
    for item in stored(tmp_path / "out"):
        jsonschema.validate(item.as_object(), schema())
        if item.report is not None:
            jsonschema.validate(item.report, report_schema())
        assert str(tmp_path) not in item.as_json()
        assert "conform-grade-" not in item.as_json()
    by_id = {g.submission.id: g for g in summary.grades}
    assert "not today" in by_id["carl"].message
    assert by_id["dora"].message == '"../../dora.py" leads out of the archive'
    assert not any(tmp_path.parent.rglob("dora.py"))
    assert by_id["gina"].groups[0].failed == ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA")


def test_a_second_run_grades_what_changed_and_nothing_else(run, submissions, tmp_path):
    folder = submissions(anna__py=ATTENTION, ben__py=UNSCALED)
    first = run(folder)
    assert first.fresh == 2
    assert run(folder).fresh == 0
    (folder / "ben.py").write_text(ATTENTION)
    second = run(folder)
    assert (second.fresh, [g.points for g in second.grades]) == (1, [10, 10])
    (folder / "anna.py").unlink()
    third = run(folder)
    assert (third.fresh, [g.submission.id for g in third.grades], third.gone) == (0, ["ben"], ("anna",))
    rows = sqlite3.connect(tmp_path / "out" / FILE).execute("SELECT submission, superseded FROM result").fetchall()
    assert sorted(rows) == [("anna", 0), ("ben", 0), ("ben", 1)]


def test_other_points_are_counted_from_stored_verdicts_and_other_clauses_are_judged(run, submissions, policy, tmp_path):
    """Would break if a typo in a title judged a class for an hour, or if a new clause counted without being judged."""
    folder = submissions(anna__py=ATTENTION, ben__py=UNSCALED)
    assert run(folder).fresh == 2
    assert not (tmp_path / "out" / "changes.csv").exists()
    doubled = replace(policy().groups[0], points=20, title="New", credit="partial")
    other = policy(groups=(doubled,), blocked="nothing")
    request = GradeRequest(folder, out=tmp_path / "out", policy=other)
    assert str(planned(request)) == "2 submissions with stored verdicts, only counted by this policy"
    summary = run(folder, policy=other)
    assert (summary.fresh, [round(g.points, 2) for g in summary.grades]) == (0, [20, 6.67])
    assert {g.groups[0].title for g in stored(tmp_path / "out")} == {"New"}
    rows = list(csv.DictReader((tmp_path / "out" / "changes.csv").read_text().splitlines()))
    assert [(row["id"], row["before"], row["after"], row["difference"]) for row in rows] == [
        ("anna", "10", "20", "10"),
        ("ben", "5", "6.67", "1.67"),
    ]
    fewer = policy(groups=(replace(doubled, clauses=doubled.clauses[:1]),))
    assert str(planned(replace(request, policy=fewer))) == "2 submissions to judge"
    assert run(folder, policy=fewer).fresh == 2
    later = list(csv.DictReader((tmp_path / "out" / "changes.csv").read_text().splitlines()))
    assert later[:2] == rows, "what an earlier run changed is no longer told"
    assert len(later) > 2
    assert all(row["time"] for row in later)


def test_a_course_gets_its_gradebooks_and_is_told_who_is_not_on_the_roster(run, submissions, policy, tmp_path):
    (tmp_path / "roster.csv").write_text("id,name\nanna,Anna\ncarl,Carl\n")
    (tmp_path / "by_hand.csv").write_text("who,points,comment\ncarl,2,oral exam\n")
    course = CoursePolicy(roster=str(tmp_path / "roster.csv"), adjustments=str(tmp_path / "by_hand.csv"))
    folder = submissions(anna__py=ATTENTION, ben__py=UNSCALED)
    summary = run(folder, policy=policy(title="Week 3", course=course))
    assert summary.strangers == ("ben",)
    made = tmp_path / "out" / "course"
    assert [row["points"] for row in csv.DictReader((made / "grades.csv").read_text().splitlines())] == ["10", "2"]
    assert "Week 3" in (made / "canvas.csv").read_text().splitlines()[0]
    assert "oral exam" in (made / "adjustments.csv").read_text()
    assert "Week 3" in (tmp_path / "out" / "overview.html").read_text()
    (tmp_path / "roster.csv").write_text("name\nAnna\n")
    with pytest.raises(CourseError, match="has no column id"):
        run(folder, policy=policy(course=course))
    assert run(folder, policy=policy()).fresh == 0


def test_one_submission_is_judged_again_by_name(run, submissions, tmp_path):
    folder = submissions(anna__py=ATTENTION, ben__py=UNSCALED)
    run(folder)
    summary = run(folder, again=("ben",))
    assert summary.fresh == 1
    assert [g.points for g in summary.grades] == [10, pytest.approx(5)]
    rows = (
        sqlite3.connect(tmp_path / "out" / FILE)
        .execute("SELECT submission, outcome, superseded FROM result")
        .fetchall()
    )
    assert sorted(rows) == [("anna", "judged", 0), ("ben", "judged", 0)]


def test_forbidden_declarations_are_ignored_and_reported(run, submissions, policy):
    declared = '[limits]\ntokens = 1\n[variant]\nnorm = "rmsnorm"\n'
    folder = submissions(anna={"solution.py": UNSCALED, "conform.toml": declared}, ben={"solution.py": UNSCALED})
    anna, ben = run(folder).grades
    assert anna.points == ben.points < 10
    assert [note.split(",")[0] for note in anna.notes] == [
        'conform.toml declares norm = "rmsnorm" under [variant]', "conform.toml declares tokens under [limits]",
    ]  # fmt: skip


@pytest.mark.full(guard="test_forbidden_declarations_are_ignored_and_reported")
def test_what_declares_itself_unable_gains_nothing_unless_the_policy_allows_it(run, submissions, policy):
    words = POLICY.replace('["SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA"]', '["SDPA-SCALE", "MASK-FLOAT"]')
    declared = "[components.ScaledDotProductAttention]\nmask = { kinds = [] }\n"
    folder = submissions(anna={"solution.py": ATTENTION, "conform.toml": declared}, ben={"solution.py": ATTENTION})
    strict = {g.submission.id: (g.points, g.groups[0].clauses) for g in run(folder, policy=policy(words)).grades}
    assert strict["anna"][0] < strict["ben"][0] == 10
    kind = run(folder, policy=policy(words + '\n[allow]\nlacking = ["masks", "float-masks"]\n'))
    assert [g.points for g in kind.grades] == [10, 10]
    assert kind.grades[0].groups[0].clauses < kind.grades[1].groups[0].clauses


def test_who_reads_float_masks_as_boolean_loses_nothing_where_the_policy_allows_that(run, submissions, policy):
    """Would break if the line of most lectures, `mask == 0`, cost points for masks that the course has not taught."""
    words = POLICY.replace('["SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA"]', '["SDPA-SCALE", "MASK-FLOAT-ADD"]')
    lecture = ATTENTION.replace("if mask.dtype == bool else scores + mask", "").replace("(mask,", "(mask != 0,")
    given = submissions(anna__py=lecture, ben__py=ATTENTION)
    assert [grade.points == 10 for grade in run(given, policy=policy(words)).grades] == [False, True]
    kind = run(given, policy=policy(words + '\n[allow]\nlacking = ["float-masks"]\n'))
    assert [grade.points for grade in kind.grades] == [10, 10]
    assert [len(grade.advice) for grade in kind.grades] == [0, 0]


@pytest.mark.full(guard="test_forbidden_declarations_are_ignored_and_reported")
def test_what_does_not_apply_to_the_reference_either_costs_nothing(run, submissions, policy, tmp_path):
    """Grouped heads in a variant without them: no declaration says so, but the reference does."""
    words = POLICY.replace('["SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA"]', '["GQA-*", "SDPA-SCALE"]')
    right = (ROOT / "examples" / "single_file.py").read_text()
    summary = run(submissions(anna__py=right, ben__py=right + "# 2\n"), policy=policy(words))
    assert [(g.points, g.groups[0].clauses) for g in summary.grades] == [(10, 1), (10, 1)]
    connection = sqlite3.connect(tmp_path / "out" / FILE)
    answers = connection.execute("SELECT clause, applies FROM answer ORDER BY clause").fetchall()
    connection.close()
    assert answers == [("GQA-DIVISIBLE", 0), ("GQA-EXPAND", 0), ("GQA-PARAM-COUNT", 0)]


def test_a_hidden_seed_is_used_and_shown_nowhere(run, submissions, policy, tmp_path):
    run(submissions(anna__py=UNSCALED), policy=policy(seed=None, hints=1))
    (found,) = stored(tmp_path / "out")
    assert found.hidden
    assert found.report["seed"] is None
    seed = (tmp_path / "out" / "seed").read_text().strip()
    texts = [p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file() and p.name != "seed"]
    assert not any(seed.encode() in text for text in texts)


def test_an_import_without_an_end_is_a_timeout(run, submissions, policy):
    hurried = policy(limits=replace(policy().limits, load_seconds=1.0))
    (found,) = run(submissions(anna__py="while True:\n    pass\n"), policy=hurried).grades
    assert (found.outcome, found.message) == ("timeout", "import took over 1 s; does it train at import?")


def test_a_submission_that_imports_the_kit_is_reported(run, submissions):
    code = f"try:\n    import conformkit.reference\nexcept ImportError:\n    pass\n{ATTENTION}"
    (found,) = run(submissions(anna__py=code)).grades
    assert [(a.kind, a.what, a.where) for a in found.advice] == [("import", "conformkit", "anna.py:2")]


def test_a_submission_of_the_kit_s_own_code_is_refused(run, submissions):
    declared = '[components.ScaledDotProductAttention]\npath = "conformkit.reference:scaled_dot_product_attention"\n'
    (found,) = run(submissions(anna={"a.py": "x = 1\n", "conform.toml": declared})).grades
    assert (found.outcome, found.points) == ("refused", 0)
    assert "conformkit.reference:scaled_dot_product_attention" in found.message


def test_a_conform_toml_of_the_class_binds_everybody(run, submissions, policy, tmp_path):
    text = '[components.ScaledDotProductAttention]\npath = "mine"\n'
    code = ATTENTION.replace("scaled_dot_product_attention", "mine")
    folder = submissions(anna={"solution.py": code, "conform.toml": "broken"})
    (found,) = run(folder, policy=policy(conform=text, impl="solution")).grades
    assert (found.outcome, found.points) == ("judged", 10)


@pytest.mark.parametrize("place", ["submissions", "submissions/out"])
def test_an_out_folder_among_the_submissions_is_refused(submissions, policy, tmp_path, place):
    folder = submissions(anna__py=ATTENTION)
    with pytest.raises(StoreUnusable, match="is inside the folder of submissions"):
        grade(GradeRequest(folder, policy(), tmp_path / place))
    assert [p.name for p in folder.iterdir()] == ["anna.py"]


def test_nothing_is_left_behind_where_submissions_were_unpacked(run, submissions, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    locked = "import os, pathlib\nhere = pathlib.Path(__file__).parent\n(here / 'x').mkdir()\n(here / 'x').chmod(0)\n"
    run(submissions(anna__py=ATTENTION, ben__py=locked + ATTENTION))
    assert list((tmp_path / "tmp").iterdir()) == []


# --- when something ends ----------------------------------------------------------------------------------------------


COMMAND = [sys.executable, "-P", "-m", "conformkit.cli", "grade"]


def started(folder, policy_file, out, *options):
    command = [*COMMAND, str(folder), "--policy", str(policy_file), "--out", str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes_of(text):
    """Return the processes whose command line has a word in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if text.encode() in line:
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def class_on_disk(submissions, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    return submissions(**CLASS), tmp_path / "policy.toml"


@pytest.mark.full(guard="test_ctrl_c_stops_it_with_a_sentence_and_the_same_command_continues")
def test_a_run_that_is_killed_twice_ends_with_the_same_grades(run, class_on_disk, tmp_path):
    run(class_on_disk[0])
    undisturbed = told(stored(tmp_path / "out"))
    out = tmp_path / "killed"
    for after in (2, 1):
        with started(*class_on_disk, out, "-n", "2") as process:
            done = 0
            while done < after:  # the second run says first what it will do
                line = process.stderr.readline()
                assert line
                done += line.startswith("[")
            process.send_signal(signal.SIGKILL)
    connection = sqlite3.connect(out / FILE)
    done = dict(connection.execute("SELECT submission, finished FROM result"))
    connection.close()
    assert 3 <= len(done) < 8
    with started(*class_on_disk, out) as process:
        process.communicate()
    assert process.returncode == 0
    connection = sqlite3.connect(out / FILE)
    rows = connection.execute("SELECT submission, finished, grade FROM result").fetchall()
    assert len(rows) == 8
    assert done.items() <= {(name, finished) for name, finished, _ in rows}
    assert told(Grade.from_object(json.loads(text)) for _, _, text in rows) == undisturbed


def test_ctrl_c_stops_it_with_a_sentence_and_the_same_command_continues(class_on_disk, tmp_path):
    out = tmp_path / "stopped"
    with started(*class_on_disk, out, "-n", "1") as process:
        assert process.stderr.readline().startswith("[1/8]")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "stopped; finished grades are stored" in said
    assert "Traceback" not in said
    with started(*class_on_disk, out) as process:
        stdout, _ = process.communicate()
    assert (process.returncode, "8 submissions graded" in stdout) == (0, True)


SLEEPER = """import pathlib, time
pathlib.Path({witness!r}).write_text("here")
time.sleep(600)
"""


@pytest.mark.full(guard="test_ctrl_c_stops_it_with_a_sentence_and_the_same_command_continues")
def test_harnesses_end_with_the_run_that_is_killed(submissions, tmp_path):
    """Killed in the middle of a submission that would go on for ten minutes."""
    witness = tmp_path / "witness"
    os.mkfifo(witness)
    (tmp_path / "policy.toml").write_text(POLICY.replace("seconds = 60", "seconds = 900").replace("= 20", "= 900"))
    folder = submissions(anna__py=SLEEPER.format(witness=str(witness)))
    with started(folder, tmp_path / "policy.toml", tmp_path / "out", "-n", "1") as process:
        assert witness.read_text() == "here"
        scratch = (tmp_path / "out" / ".scratch").read_text().strip()
        (harness,) = processes_of(scratch)
        handle = os.pidfd_open(harness)
        process.send_signal(signal.SIGKILL)
    assert select.select([handle], [], [], 60)[0]
    os.close(handle)
    assert Path(scratch).exists()
    (folder / "anna.py").write_text(ATTENTION)
    with started(folder, tmp_path / "policy.toml", tmp_path / "out") as process:
        process.communicate()
    assert not Path(scratch).exists()


@pytest.mark.full(guard="test_one_process_grades_one_after_the_other_and_another_one_follows_its_death")
def test_a_harness_that_is_killed_loses_its_submission_for_one_try_only(submissions, policy, tmp_path):
    """The harness of ben is killed once; both students have their points in the end."""
    witness = tmp_path / "witness"
    os.mkfifo(witness)
    once = f"import pathlib\nw = pathlib.Path({str(witness)!r})\nif w.is_fifo():\n    w.write_text('x')\n    input()\n"
    folder = submissions(
        anna__py=ATTENTION, ben__py=once.replace("input()", "__import__('time').sleep(600)") + ATTENTION
    )

    def kill():
        witness.read_text()
        witness.unlink()
        scratch = (tmp_path / "out" / ".scratch").read_text().strip()
        for pid in processes_of(scratch):
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    slow = policy(limits=replace(policy().limits, load_seconds=900, seconds=900))
    summary = grade(GradeRequest(folder, slow, tmp_path / "out", workers=1))
    killer.join()
    assert [(g.submission.id, g.points) for g in summary.grades] == [("anna", 10), ("ben", 10)]


class Dying:
    """Replaces harnesses: sets for each submission how often the harness dies before it grades."""

    def __init__(self, deaths):
        self.deaths = deaths
        self.tries = []

    def grade(self, task):
        name = task.package.submission.id
        self.tries.append(name)
        if self.tries.count(name) <= self.deaths[name]:
            raise HarnessDied("the process that graded it ended (killed by SIGKILL)")
        return Finished(replace(ungraded(task, SubmissionOutcome.JUDGED, ""), points=10.0), "fine\n")

    def stop(self):
        pass

    close = stop


def test_twice_dead_is_a_failure_of_the_kit_and_tried_anew_by_the_next_run(run, submissions, monkeypatch):
    folder = submissions(anna__py="1", ben__py="2", carl__py="3")
    dying = Dying({"anna": 0, "ben": 1, "carl": 2})
    monkeypatch.setattr(executor, "Harnesses", lambda scratch: dying)
    summary = run(folder)
    assert [(g.outcome.value, g.points) for g in summary.grades] == [("judged", 10), ("judged", 10), ("kit failed", 0)]
    assert sorted(dying.tries) == ["anna", "ben", "ben", "carl", "carl"]
    assert "killed by SIGKILL" in summary.grades[2].message
    again = run(folder)
    assert (again.fresh, again.grades[2].outcome) == (1, "judged")


HANDED_BACK = {
    "by-name": "from conformkit.spec.attention import scaled_dot_product_attention",
    "the-model": "from conformkit.reference import scaled_dot_product_attention",
    "by-importlib": """
import importlib
law = importlib.import_module("conformkit.spec.attention")
scaled_dot_product_attention = law.scaled_dot_product_attention
""",
    "in-the-call": """
def scaled_dot_product_attention(q, k, v, mask=None):
    import conformkit.spec.attention as law
    return law.scaled_dot_product_attention(q, k, v, mask)
""",
}


@pytest.mark.full(guard="test_nobody_gets_points_by_an_attack")
def test_the_kit_s_own_code_gets_nothing_in_a_process_either(run, submissions):
    """A sandbox does not contain it; in a process its files exist, but an import by name is refused."""
    files = {f"{name}__py": f"import numpy\n{code}\n" for name, code in HANDED_BACK.items()}
    found = run(
        submissions(honest__py=f"import conformkit.conformance.driver.wire.frames\n{ATTENTION}", **files)
    ).grades
    points = {grade.submission.name: grade.points for grade in found}
    assert points == {"honest": 10} | dict.fromkeys(HANDED_BACK, 0)
    assert all(any(item.what == "conformkit" for item in grade.advice) for grade in found)


@pytest.mark.full(guard="test_hostile_names_print_as_text")
def test_undecodable_and_multiline_names_cost_nobody_a_grade_and_are_shown_as_text(run, submissions, tmp_path):
    folder = submissions(anna__py=ATTENTION)
    for name in (os.fsdecode(b"\xff\xfe"), "two\nlines"):
        (folder / name).mkdir()
        (folder / name / "solution.py").write_text(ATTENTION)
    (folder / "\u202egnp.py").write_text(ATTENTION)
    summary = run(folder)
    assert {g.submission.name: g.points for g in summary.grades} == {
        "anna": 10, "\ufffd\ufffd": 10, "two lines": 10, "\ufffdgnp": 0,
    }  # fmt: skip
    assert len(list((tmp_path / "out" / "logs").iterdir())) == 4
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*.*") if path.suffix != ".sqlite"]
    assert texts
    assert not [text for text in texts if "\u202e" in text or "two\nlines" in text]


SAW = "OSError: it saw 0.4824"


@pytest.mark.parametrize(("seed", "message"), [(3, SAW), (None, "OSError")], ids=["open", "hidden"])
def test_what_an_executor_says_of_a_failure_is_not_quoted_on_hidden_draws(
    run, submissions, policy, monkeypatch, seed, message
):
    class Failing(Dying):
        def grade(self, task):
            raise OSError("it saw 0.4824")

    monkeypatch.setattr(executor, "Harnesses", lambda scratch: Failing({}))
    (found,) = run(submissions(anna__py="1"), policy=policy(seed=seed)).grades
    assert (found.outcome, found.message) == ("kit failed", message)


def test_a_full_disk_for_what_is_unpacked_ends_the_run_and_costs_nobody_a_grade(
    run, submissions, monkeypatch, tmp_path_factory
):
    """Without this, every remaining student would get a failure of the kit."""
    folder = submissions(anna__py=ATTENTION, ben__py=ATTENTION + "#2")

    class Full(Dying):
        def grade(self, task):
            raise NoRoom("the disk that /tmp is on, where submissions are unpacked, is full")

    monkeypatch.setattr(executor, "Harnesses", lambda scratch: Full({}))
    with pytest.raises(StoreBroken, match=r"where submissions are unpacked, is full; TMPDIR names another"):
        run(folder)
    monkeypatch.undo()
    summary = run(folder)
    assert (summary.fresh, [g.points for g in summary.grades]) == (2, [10, 10])


@pytest.mark.full(guard="test_a_full_disk_for_what_is_unpacked_ends_the_run_and_costs_nobody_a_grade")
def test_a_log_that_cannot_be_written_ends_the_run_with_what_is_stored(run, submissions, tmp_path):
    folder = submissions(anna__py=ATTENTION)
    run(folder)
    (folder / "ben.py").write_text(ATTENTION)
    shutil.rmtree(tmp_path / "out" / "logs")
    (tmp_path / "out" / "logs").symlink_to("/dev/full")
    with pytest.raises(StoreBroken, match="logs"):
        run(folder)
    (tmp_path / "out" / "logs").unlink()
    assert [g.points for g in run(folder).grades] == [10, 10]
