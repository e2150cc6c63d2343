import json
from dataclasses import replace

import jsonschema
import pytest

from conformkit.conformance.report.json_report import as_json, as_object, schema
from conformkit.conformance.report.stored import NotAReport, from_object
from conformkit.spec.clauses import clauses


@pytest.mark.parametrize("hints", [1, 2, 3])
def test_a_stored_report_has_the_same_content_as_the_run(told, hints):
    told = replace(told, hints=hints)
    stored = json.loads(as_json(told))
    assert as_object(from_object(stored)) == stored


def test_hostile_text_survives_storage_as_text(hostile):
    stored = json.loads(as_json(hostile))
    assert as_object(from_object(stored)) == stored


def test_clauses_get_their_text_from_the_law_and_their_level_from_the_report(report, result):
    known = next(iter(clauses().values()))
    of_then = replace(result(clause_id=known.id), clause=replace(known, title="As it was called then.", why=""))
    (found,) = from_object(as_object(report(of_then))).results
    assert (found.clause.title, found.clause.why) == ("As it was called then.", known.why)


def test_clauses_keep_the_order_of_the_file(report, result):
    stored = as_object(report(result(clause_id="ZZ-NEW", line=1), result(clause_id="AA-NEW", line=2)))
    assert [c["id"] for c in as_object(from_object(stored))["clauses"]] == ["ZZ-NEW", "AA-NEW"]


def test_hidden_draws_stay_hidden(report, result):
    stored = as_object(report(result(), hidden=True, seed=41))
    jsonschema.validate(stored, schema())
    assert (stored["seed"], stored["hidden"]) == (None, True)
    assert as_object(from_object(stored)) == stored


def test_a_report_from_before_hidden_draws_is_read(report, result):
    stored = as_object(report(result()))
    del stored["hidden"]
    assert from_object(stored).hidden is False


def test_a_report_from_before_masks_is_read(told):
    stored = as_object(told)
    marks = [clause["excerpt"].pop("hidden") for clause in stored["clauses"] if clause["excerpt"]]
    assert marks == [None, [[False, True], [False, False]]]
    assert {result.excerpt.hidden for result in from_object(stored).results if result.excerpt} == {()}


def test_a_report_from_before_excerpts_is_read(told):
    stored = as_object(told)
    for clause in stored["clauses"]:
        del clause["excerpt"]
    assert {result.excerpt for result in from_object(stored).results} == {None}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda r: r.update(schema="conformkit.report/9"), "conformkit.report/9"),
        (lambda r: r.pop("clauses"), "clauses"),
        (lambda r: r["clauses"][0].update(verdict="green"), "green"),
        (lambda r: r.update(implementation=None), "NoneType"),
        (lambda r: r["clauses"][0].update(excerpt={"got": [[1], [1, 2]], "want": [[1], [1]]}), "different lengths"),
        (lambda r: r["clauses"][0].update(excerpt={"got": [[1]], "want": [[1]], "hidden": [[0, 1]]}), "different leng"),
        (lambda r: r["clauses"][0].update(excerpt={"got": [[1]], "want": [[1]], "hidden": [[1], [1]]}), "its mask"),
    ],
    ids=[
        "another-schema",
        "no-clauses",
        "unknown-verdict",
        "no-implementation",
        "ragged-rows",
        "wide-mask",
        "long-mask",
    ],
)
def test_an_invalid_report_is_refused_with_the_reason(report, result, spoil, words):
    stored = as_object(report(result()))
    spoil(stored)
    with pytest.raises(NotAReport, match=words):
        from_object(stored)
