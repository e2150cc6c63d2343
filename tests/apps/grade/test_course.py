"""From points of submissions to grades of students: whose they are, lateness, attempts, changes by hand."""

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from conformkit.conformance.apps.grade.course import (
    Adjustment,
    Course,
    CourseError,
    Late,
    Student,
    adjustments,
    course_grades,
    course_of,
    roster,
    submitted,
)
from conformkit.conformance.apps.grade.outputs.gradebooks import as_blackboard, as_canvas, as_course, as_moodle
from conformkit.conformance.apps.grade.outputs.similar import as_similar, pairs
from conformkit.conformance.apps.grade.policy import CoursePolicy
from conformkit.conformance.apps.grade.policy_file import example, parse_policy
from conformkit.conformance.apps.grade.record import Grade, Submission, SubmissionOutcome
from conformkit.conformance.binding.toml_nodes import ConfigError

DEADLINE = datetime(2026, 11, 23, 18, tzinfo=UTC)
ANNA = Student("s1", "Anna Berg", "anna@example.org", "A")
BEN = Student("s2", "Ben Cole", "ben@example.org", "B")


def handed_in(name, points=10.0, digest="0", functions=()):
    return Grade(
        Submission(name, name, name, digest * 64), SubmissionOutcome.JUDGED, points=points, functions=functions
    )


@pytest.mark.parametrize(
    "name", ["s1", "S1", "anna", "anna@example.org", "Anna Berg", "Anna_Berg_late", "s1-2", "anna.final"]
)
def test_a_submission_is_its_students_by_id_address_or_name(name):
    (anna, ben), strangers = course_grades(Course((ANNA, BEN)), [handed_in(name)])
    assert (anna.points, ben.grade, strangers) == (10, None, [])


@pytest.mark.parametrize("name", ["s11", "annabel", "x", "s", ""])
def test_a_name_that_only_begins_alike_is_nobodys(name):
    _, strangers = course_grades(Course((ANNA, BEN)), [handed_in(name)])
    assert strangers == [name]


GRADEBOOK = """Student,ID,SIS User ID,SIS Login ID,Section,Homework 3 (8812)
,,,,,Manual Posting
    Points Possible,,,,,10
"Berg, Anna Maria",40037,,aberg,A,
"Berg, Anna",40111,s4711,aberg2,A,7
"""


def test_the_names_of_canvas_and_blackboard_find_their_students_by_its_own_gradebook(tmp_path):
    """Would break if a class had to be renamed by hand, or grades went to somebody whose name only begins alike."""
    (tmp_path / "export.csv").write_text(GRADEBOOK)
    anna_maria, anna = students = roster(tmp_path / "export.csv")
    assert (anna_maria.id, anna_maria.canvas, anna.id, anna.canvas) == ("aberg", "40037", "s4711", "40111")
    names = ["bergannamaria_LATE_40037_90112_hw3-1", "berganna_40111_40999_A3 (final)", "hw3_s4711_attempt_1", "x_4711"]
    found, strangers = course_grades(Course(students), [handed_in(name, 3.5) for name in names])
    assert [one.attempts for one in found] == [1, 2]
    assert strangers == ["x_4711"]
    assert rows(as_canvas(found, "W", 10))[2] == ["Berg, Anna Maria", "40037", "aberg", "aberg", "A", "3.5"]


def test_a_name_as_canvas_writes_it_fits_without_its_number():
    found, strangers = course_grades(Course((ANNA, BEN)), [handed_in("berganna_40037_9_hw"), handed_in("bencole-2")])
    assert ([one.attempts for one in found], strangers) == ([1, 1], [])


def test_a_name_of_two_students_is_nobodys_and_the_longer_one_wins():
    twins = (Student("s1", "Anna"), Student("s2", "Anna"), Student("s3", "Anna Maria"))
    found, strangers = course_grades(Course(twins), [handed_in("Anna"), handed_in("Anna Maria")])
    assert strangers == ["Anna"]
    assert [one.grade is not None for one in found] == [False, False, True]


@pytest.mark.parametrize(
    ("after", "percent"),
    [(-1, 0), (0, 0), (14, 0), (16, 10), (15 + 24 * 60, 10), (16 + 24 * 60, 20), (10**5, 50)],
    ids=["early", "on-time", "grace", "first-day", "a-day", "second-day", "at-most"],
)
def test_each_day_that_has_begun_costs_its_share(after, percent):
    late = Late(DEADLINE, per_day=10, most=50, grace_minutes=15)
    assert late.percent(DEADLINE + timedelta(minutes=after)) == percent


def test_the_best_attempt_counts_after_what_lateness_costs_it():
    """Would break if a late attempt with more points hid an earlier one that gives more."""
    times = {"anna-1": DEADLINE, "anna-2": DEADLINE + timedelta(days=4)}
    course = Course((ANNA,), submitted=times, late=Late(DEADLINE, per_day=10))
    attempts = [handed_in("anna-1", 8), handed_in("anna-2", 9)]
    ((best,), _) = course_grades(course, attempts)
    assert (best.grade.submission.name, best.points, best.attempts) == ("anna-1", 8, 2)
    ((last,), _) = course_grades(replace(course, attempts="last"), attempts)
    assert (last.grade.submission.name, round(last.points, 2)) == ("anna-2", 5.4)
    assert last.comments == ("late: 40 percent of 9 points",)


def test_changes_by_hand_are_added_last_and_told_with_their_comment():
    changes = {"s1": (Adjustment(1.5, "oral exam"),), "anna": (Adjustment(-0.5, "no name in the file"),)}
    ((anna, ben), _) = course_grades(Course((ANNA, BEN), changes | {"s2": (Adjustment(-3, "x"),)}), [handed_in("anna")])
    assert (anna.points, anna.adjusted) == (11, 1)
    assert anna.comments == ("+1.5 points: oral exam", "-0.5 points: no name in the file")
    assert ben.points == 0


def test_tables_are_read_with_any_order_of_columns(tmp_path):
    (tmp_path / "r.csv").write_text("\ufeffName,Email,ID\n Anna , a@b.c ,s1\n", encoding="utf-8")
    assert roster(tmp_path / "r.csv") == (Student("s1", "Anna", "a@b.c", ""),)
    (tmp_path / "s.csv").write_text("Student,ID,Name\nyes,s1,Anna\n")
    assert roster(tmp_path / "s.csv") == (Student("s1", "Anna"),)
    (tmp_path / "a.csv").write_text("who,points,comment\ns1,1,a\ns1,-2.5,b\n")
    assert adjustments(tmp_path / "a.csv") == {"s1": (Adjustment(1, "a"), Adjustment(-2.5, "b"))}
    (tmp_path / "t.csv").write_text("submission,time\nanna,2026-11-23T18:00+00:00\n")
    assert submitted(tmp_path / "t.csv") == {"anna": DEADLINE}


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (roster, "id\ns1\n", "has no column name"),
        (roster, "id,name\ns1,Anna\nS1,Ben\n", "lists S1 twice"),
        (roster, "id,name\n,Anna\n", "line 2: id is empty"),
        (adjustments, "who,points,comment\ns1,one,x\n", "line 2: could not convert"),
        (adjustments, "who,points,comment\ns1,nan,x\n", "line 2: nan is no number"),
        (adjustments, "who,points,comment\ns1,1,\n", "line 2: a change by hand needs a comment"),
        (submitted, "submission,time\na,2026-11-23T18:00\n", "has no time zone"),
        (submitted, "submission,time\na,soon\n", "line 2: Invalid isoformat"),
    ],
)
def test_a_table_that_cannot_be_used_names_its_line(tmp_path, read, text, words):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(CourseError, match=words):
        read(tmp_path / "x.csv")
    with pytest.raises(CourseError, match="cannot be read: No such file"):
        read(tmp_path / "gone.csv")


def test_the_policy_names_the_files_next_to_it(tmp_path):
    (tmp_path / "roster.csv").write_text("id,name\ns1,Anna\n")
    (tmp_path / "times.csv").write_text("submission,time\nanna,2026-11-24T18:00+00:00\n")
    text = '[course]\nroster = "roster.csv"\nsubmitted = "times.csv"\ndeadline = 2026-11-23T18:00:00Z\nper_day = 5\n'
    policy = parse_policy(text, tmp_path / "policy.toml")
    course = course_of(policy.course)
    assert (course.late.percent(course.submitted["anna"]), course.attempts) == (5, "best")
    assert course_of(CoursePolicy()) is None
    assert policy.evidence() == parse_policy("").evidence()
    assert policy.digest() != parse_policy("").digest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attempts = 'best'", "a course needs its roster"),
        ("roster = 'gone.csv'", "there is no file"),
        ("roster = 'r.csv'\ndeadline = 2026-11-23T18:00:00Z", "there is no table of times"),
        ("roster = 'r.csv'\nsubmitted = 'r.csv'\ndeadline = 2026-11-23T18:00:00", "no time zone"),
        ("roster = 'r.csv'\nsubmitted = 'r.csv'\ndeadline = 'soon'", "is no date"),
        ("roster = 'r.csv'\nmost = 200", "a percentage"),
    ],
)
def test_a_course_that_cannot_be_used_is_refused(tmp_path, text, words):
    (tmp_path / "r.csv").write_text("id,name\n")
    with pytest.raises(ConfigError, match=words):
        parse_policy(f"[course]\n{text}\n", tmp_path / "policy.toml")


def test_the_example_shows_every_key_of_a_course(tmp_path):
    text = example().partition("# [course]\n")[2].partition("\n\n")[0]
    for name in ("roster", "adjustments", "submitted"):
        (tmp_path / f"{name}.csv").touch()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    course = parse_policy("\n".join(["[course]", *lines]), tmp_path / "policy.toml").course
    assert {name for name in CoursePolicy.__dataclass_fields__ if f"{name} = " not in text} == set()
    assert (course.most, course.grace_minutes) == (50, 15)


def rows(text):
    return list(csv.reader(text.splitlines()))


def test_gradebooks_have_the_columns_that_they_are_imported_by():
    evil = Student("s9", "=1+1", "e@x.y", "A")
    found, _ = course_grades(Course((ANNA, evil), {"s9": (Adjustment(-1, "=cmd"),)}), [handed_in("anna", 7.5)])
    canvas = rows(as_canvas(found, "Week 3", 12.5))
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 3"]
    assert canvas[1] == ["    Points Possible", "", "", "", "", "12.5"]
    assert canvas[2] == ["Anna Berg", "", "s1", "anna@example.org", "A", "7.5"]
    assert canvas[3][0] == "'=1+1"
    moodle = rows(as_moodle(found, "Week 3"))
    assert moodle[0] == ["ID number", "Email address", "Week 3", "Week 3 (feedback)"]
    assert moodle[2][3] == "'-1 points: =cmd"
    assert rows(as_blackboard(found, "Week 3", 12.5))[:2] == [
        ["Username", "Week 3 [Total Pts: 12.5 Score]"],
        ["s1", "7.5"],
    ]
    table = rows(as_course(found, 12.5))
    assert dict(zip(table[0], table[1], strict=True))["submission"] == "anna"
    assert len({len(row) for row in table}) == 1


def test_equal_and_similar_submissions_are_paired_and_given_code_is_not():
    """Would break if starter code that everybody has made everybody similar to everybody."""
    given = tuple(f"given{n}" for n in range(5))
    grades = [handed_in(f"n{n}", digest=str(n), functions=(*given, f"own{n}a", f"own{n}b")) for n in range(9)]
    assert list(pairs(grades)) == []
    grades[3] = replace(grades[3], functions=(*given, "own1a", "own1b", "own3"))
    grades[5] = replace(grades[5], submission=replace(grades[5].submission, digest=grades[4].submission.digest))
    table = rows(as_similar(grades))
    assert table[1:] == [["n4", "n5", "yes", "100", "7"], ["n1", "n3", "no", "100", "2"]]
