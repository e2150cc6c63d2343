import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rich.cells import cell_len

from conformkit.conformance.apps.compare.comparison import Column, Comparison, as_object, schema
from conformkit.conformance.apps.compare.rendering import as_html, as_markdown, write
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.badge import as_badge
from conformkit.conformance.report.terminal import console

HOSTILE = "<script>alert(1)</script>|`x`\x1b[31m\n| evil |\u202e"


@pytest.fixture
def comparison(report, result):
    first = report(result(clause_id="SDPA-SCALE"), result(clause_id="MHA-GOLDEN", line=2), implementation="first")
    second = report(
        result(Verdict.FAIL, clause_id="SDPA-SCALE"), result(clause_id="MHA-GOLDEN", line=2), implementation=HOSTILE
    )
    return Comparison((Column("first", first), Column(HOSTILE, second), Column("gone", problem="no module 'gone'")))


def lines(comparison, width, **options):
    import io

    stream = io.StringIO()
    write(comparison, console(stream, "never", width), **options)
    return stream.getvalue().splitlines()


def test_only_differing_clauses_are_shown_unless_all_are_requested(comparison):
    assert [row.clause.id for row in comparison.rows()] == ["SDPA-SCALE"]
    assert comparison.rows()[0].verdicts == (Verdict.PASS, Verdict.FAIL, None)
    assert {row.clause.id for row in comparison.rows(everything=True)} == {"SDPA-SCALE", "MHA-GOLDEN"}
    assert "MHA-GOLDEN" not in as_markdown(comparison) + as_html(comparison)
    assert "MHA-GOLDEN" in as_markdown(comparison, everything=True)


@pytest.mark.parametrize("width", [20, 40, 60, 120])
def test_the_table_fits_the_terminal_and_names_the_implementations(comparison, width):
    shown = lines(comparison, width)
    assert all(cell_len(line) <= width for line in shown)
    assert any(line.startswith("SDPA-SCALE") for line in shown)
    text = " ".join(shown)
    assert "pass" in text
    assert "FAIL" in text
    assert "the verdicts differ on 1 of 2 clauses" in " ".join(text.split())


def test_hostile_names_stay_text_in_every_form(comparison):
    page, document = as_html(comparison, everything=True), as_markdown(comparison)
    assert "<script>alert" not in page
    assert not re.search("[\x1b\u202e]", page + document + "\n".join(lines(comparison, 80)))
    assert not [line for line in document.splitlines() if line.startswith("| evil")]


def test_reports_that_were_made_in_different_ways_are_called_so(report, result):
    found = Comparison((Column("a", report(result(), seed=1)), Column("b", report(result(), seed=2))))
    assert found.mixed == ("seed",)
    assert "differ in seed" in " ".join(lines(found, 80))


def test_the_json_has_every_clause_and_says_on_which_they_differ(comparison):
    found = json.loads(json.dumps(as_object(comparison)))
    assert [(c["id"], c["differs"], c["verdicts"]) for c in found["clauses"] if c["differs"]] == [
        ("SDPA-SCALE", True, ["pass", "fail", None])
    ]
    assert len(found["clauses"]) == 2
    assert [i["problem"] for i in found["implementations"]] == ["", "", "no module 'gone'"]


def test_the_json_satisfies_its_schema_whatever_the_verdicts_and_the_names(comparison, report, result):
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(as_object(comparison), schema())
    every = report(*(result(verdict, f"SDPA-V{n}", line=n) for n, verdict in enumerate(Verdict)), seed=2)
    jsonschema.validate(as_object(Comparison((*comparison.columns, Column("every", every)))), schema())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.update(schema="conformkit.comparison/0"),
        lambda c: c.pop("mixed"),
        lambda c: c["clauses"][0]["verdicts"].append("skipped"),
        lambda c: c["clauses"][0].pop("differs"),
        lambda c: c["implementations"][0]["ledger"].pop("blocked"),
        lambda c: c["implementations"][2].update(conforms=True),
        lambda c: c["implementations"][2].update(ledger={"pass": 1}),
    ],
    ids=[
        "another-form",
        "no-mixed",
        "a-new-verdict",
        "no-differs",
        "half-a-ledger",
        "green-unjudged",
        "judged-unjudged",
    ],
)
def test_the_schema_refuses_what_a_careless_change_would_make(comparison, spoil):
    spoilt = as_object(comparison)
    spoil(spoilt)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoilt, schema())


@pytest.mark.parametrize(("verdict", "words"), [(Verdict.PASS, "conforms"), (Verdict.FAIL, "1 of 1 clause fails")])
def test_a_badge_is_an_image_that_says_the_verdict(report, result, verdict, words):
    root = ET.fromstring(as_badge(report(result(verdict), profile="core")))
    assert root.attrib["aria-label"] == f"conformance: core: {words}, seed 7"
    assert "".join(root.itertext()).count(words) == 2
    assert float(root.attrib["width"]) > 100


def test_a_badge_tells_what_was_not_judged_in_time_from_what_is_wrong(report, result):
    """Would break if a run that met its time limit put a red badge on code of which nothing is red."""
    left = result(Verdict.NOT_RUN, "X-Y", reason="time is up")
    stopped = report(result(), left, complete=False, late="time is up")
    assert "not judged: 1 not run, seed 7</text>" in as_badge(stopped)
    assert '"#b42318"' not in as_badge(stopped)
    assert '"#b42318"' in as_badge(replace(stopped, results=[result(Verdict.FAIL), left]))


def test_a_badge_carries_its_seed_and_the_day_of_a_drawn_one(report, result):
    badge = as_badge(report(result(), seed=712, drawn=True, date="2026-11-23", only=()))
    assert "conforms, seed 712 (drawn), 2026-11-23</text>" in badge
    assert "seed hidden</text>" in as_badge(report(result(), hidden=True, only=()))


def test_a_badge_holds_foreign_text_as_text(report, result):
    badge = as_badge(report(result(), only=('"><script>x</script>\x00\ufffe',)), label="<b>&\x1b")
    root = ET.fromstring(badge)
    assert {element.tag.partition("}")[2] for element in root.iter()} == {"svg", "title", "rect", "path", "g", "text"}
