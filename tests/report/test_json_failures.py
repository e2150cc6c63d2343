"""The failures alone as JSON: what an editor or a script needs, and nothing that it would have to take apart."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.findings.altered import Altered
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.findings.threshold import Pattern, Threshold
from conformkit.conformance.report.json_failures import as_json_failures, schema
from conformkit.conformance.report.json_finding import finding_from, finding_object

FOUND = Finding(
    Kind.NUMBERS, "output", 1.5, float("nan"), (0, 2), 3, 24, float("inf"), 1e-6, 1e-9, "float64",
    notes=("a note",), setting=Setting("queries, keys", (3, 7)),
    threshold=Threshold(Pattern.FROM, ("tokens",), "", 257, 256),
)  # fmt: skip


def test_only_red_clauses_are_listed_with_their_numbers_and_command(report, result, tmp_path):
    """Would break if a script had to search 480 clauses, or a sentence, for the three that fail."""
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").write_text("a = 1\nb = 2\n")
    made = report(
        result(), result(Verdict.FAIL, "SDPA-BAD", line=9, finding=FOUND),
        result(Verdict.ERROR, "SDPA-LINE", line=8, where="mypkg/__init__.py:2 in b"),
        location=str(tmp_path / "mypkg"),
    )  # fmt: skip
    found = json.loads(as_json_failures(made))
    jsonschema.validate(found, schema())
    first, second = sorted(found["failures"], key=lambda one: one["id"])
    assert (first["id"], first["finding"]["got"], first["finding"]["want"]) == ("SDPA-BAD", 1.5, "nan")
    assert first["finding"]["setting"]["values"] == {"queries": 3, "keys": 7}
    assert first["finding"]["threshold"]["first"] == 257
    assert (second["file"], second["line"]) == ("mypkg/__init__.py", 2)
    assert "--only SDPA-BAD --seed 7" in first["again"]


def test_hostile_text_satisfies_the_schema(hostile):
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(as_json_failures(hostile)), schema())


def test_known_mistakes_are_named_as_far_as_hints_allow(told):
    """Would break if a teacher's limit on hints held for the report and not for this file."""
    named = next(one for one in json.loads(as_json_failures(told))["failures"] if one["names"])
    assert named["names"][0]["defect"] == "sdpa-no-scale"
    assert named["fix"] == "divide by math.sqrt(k.shape[-1])"
    text = as_json_failures(replace(told, hints=1))
    assert "sdpa-no-scale" not in text
    assert "divide by math.sqrt(k.shape[-1])" not in text


@pytest.mark.parametrize(
    "found",
    [
        FOUND,
        replace(FOUND, relation=Relation(How.MADE, names=("`q`",), change=Altered.ABSENT)),
        Finding(Kind.RAISED, "", error="E", said="no"),
        Finding(Kind.SHAPE, "x", (2, 3), (2, 4)),
    ],
    ids=["numbers", "relation", "raised", "shape"],
)
def test_a_finding_is_read_back_as_it_was(found):
    """Would break if a stored report were compared or rendered with other numbers than the run's."""
    again = finding_from({"finding": json.loads(json.dumps(finding_object(found)))})
    assert finding_object(again) == finding_object(found)
    assert str(again.setting) == str(found.setting)
    assert again.relation == found.relation


def test_a_report_of_an_older_kit_keeps_its_sentences():
    old = finding_from({"message": "output[0] is 1.5, expected 2", "details": ["with T = 3"]})
    assert (old.label, old.notes) == ("output[0] is 1.5, expected 2", ("with T = 3",))
