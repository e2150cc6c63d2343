"""A grade has the same points in every output."""

import json
from dataclasses import replace

import pytest

from conformkit.conformance.apps.grade.logs import log
from conformkit.conformance.apps.grade.outputs import write_all
from conformkit.conformance.apps.grade.progress import points
from conformkit.conformance.apps.grade.record import Grade

EXACT = ("90.625", "90.6250", "30.2083", "30.208333")
TELLING = {"grades.csv", "junit.xml", "overview.html", "report.html", "report.md", "results.json", "grade.json"}


@pytest.fixture
def uneven(graded):
    """A grade whose points and those of a group have more than two places."""
    first, second = graded().groups
    groups = (
        replace(first, points=30.0 + 5 / 24, max_points=40.0),
        replace(second, points=60.0 + 5 / 12, max_points=60.5),
    )
    return graded(points=90.625, max_points=100.5, groups=groups)


def test_every_file_has_points_to_two_places(tmp_path, uneven):
    write_all(tmp_path, [uneven])
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name, text in texts.items() if "90.62" in text} == TELLING
    assert not [name for name, text in texts.items() if any(exact in text for exact in EXACT)]


def test_what_is_printed_and_logged_has_them_to_two_places(uneven):
    assert points(uneven) == "90.62 of 100.5"
    assert log(uneven).splitlines().count("90.62 of 100.5 points, 2.5 s") == 1


def test_stored_results_come_back_with_their_points(uneven):
    stored = Grade.from_object(json.loads(uneven.as_json()))
    assert (stored.points, stored.groups[0].points) == (90.62, 30.21)
    assert stored.as_json() == uneven.as_json()
