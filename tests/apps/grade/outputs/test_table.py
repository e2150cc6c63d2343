import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.apps.grade.outputs.table import as_csv, cell

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_row_a_submission_with_points_by_group(graded, lost):
    first, second = rows(as_csv([graded(), lost]))
    assert (first["id"], first["name"], first["points"], first["max_points"]) == ("s1", "ada", "7.5", "12.5")
    assert (first["points.attention"], first["points.heads"]) == ("5", "2.5")
    assert (first["clauses"], first["passed"], first["outcome"], first["message"]) == ("5", "4", "judged", "")
    assert (second["points"], second["outcome"]) == ("0", "not loaded")
    assert second["message"].startswith("importing it raised ImportError")


def test_a_group_that_only_some_have_is_a_column_for_all(graded):
    first = graded(groups=graded().groups[:1])
    one, two = rows(as_csv([first, graded("bob", 2)]))
    assert (one["points.heads"], two["points.heads"]) == ("", "2.5")


def test_required_clauses_that_do_not_hold_are_named_once(graded):
    (row,) = rows(as_csv([graded(required=("SDPA-SCALE", "MASK-NONE"))]))
    assert row["required_failed"] == "SDPA-SCALE MASK-NONE"


def test_many_points_are_written_out(graded):
    (row,) = rows(as_csv([graded(points=1234567.25)]))
    assert row["points"] == "1234567.25"


@pytest.mark.parametrize("sign", FORMULAS, ids=ascii)
def test_no_cell_begins_a_formula(graded, sign):
    name = f'{sign}HYPERLINK("http://x";"y")'
    grade = graded(name, message=name)
    (row,) = rows(as_csv([grade]))
    assert not any(value.startswith(FORMULAS) for value in row.values())


@given(st.text(st.sampled_from("=+-@\t\r\n ',;\"aé\x00\u202e"), max_size=12))
def test_a_cell_is_one_line_and_no_formula(text):
    assert not cell(text).startswith(FORMULAS)
    assert len(cell(text).splitlines()) <= 1


@given(st.text(st.sampled_from("=+-@\t ',;\"a＝"), max_size=12))
def test_a_spreadsheet_that_splits_at_semicolons_finds_no_formula_either(text):
    """`a;=1+1;b` was one, however it is quoted between commas."""
    fields = [field for row in csv.reader(io.StringIO(_written(text), newline=""), delimiter=";") for field in row]
    assert not any(field.strip().startswith(FORMULAS) for field in fields)


@given(st.text(st.sampled_from(",\";'\n\r\t a"), max_size=12))
def test_quotes_and_commas_come_back_as_they_were(text):
    (row,) = csv.reader(io.StringIO(_written(text), newline=""))
    assert row == [cell(text), "end"]


def _written(text):
    stream = io.StringIO(newline="")
    csv.writer(stream).writerow([cell(text), "end"])
    return stream.getvalue()


def test_hostile_text_stays_in_its_row(hostile, graded):
    found = rows(as_csv([hostile, graded()]))
    assert [row["id"] for row in found] == ["s3", "s1"]
    assert all(None not in row for row in found)
