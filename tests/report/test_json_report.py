import json
import math

import jsonschema
import pytest

from conformkit.conformance.engine.results import Undeclared, Verdict
from conformkit.conformance.report.json_report import as_json, as_object, schema

HOSTILE = '\x1b[31m"}]\ud800\x00\u202e\n</script>' + "A" * 100_000


@pytest.fixture
def varied(report, result):
    return report(
        *(result(verdict, f"SDPA-V{n}", line=n) for n, verdict in enumerate(Verdict)),
        result(Verdict.FAIL, "SDPA-INF", distance=math.inf, seconds=math.nan, line=90),
        result(Verdict.ERROR, "SDPA-EVIL", message=HOSTILE, details=(HOSTILE,), output=HOSTILE, where=HOSTILE, line=91),
        implementation=HOSTILE, notes=[HOSTILE], missing=["FeedForward"], only=("SDPA",),
        undeclared=[
            Undeclared("TransformerBlock", "norm_eps", 1e-5, 1e-6, "variant", "norm_eps = 1e-6"),
            Undeclared("TinyTransformerLM", "tied", False, True, "components.TinyTransformerLM.variant", "tied = true"),
        ],
        variant={"norm_eps": 1e-12, "tied": True, "kv_heads": "num_heads // 2", "rotary_base": math.inf},
    )  # fmt: skip


def test_every_verdict_and_hostile_text_satisfy_the_schema(varied):
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(as_json(varied)), schema())


def test_the_schema_refuses_what_a_careless_change_would_make(report, result):
    for spoil in (
        lambda r: r.pop("conforms"),
        lambda r: r["ledger"].pop("blocked"),
        lambda r: r["clauses"][0].update(verdict="skipped"),
        lambda r: r["clauses"][0].update(distance="far"),
        lambda r: r.update(schema="conformkit.report/0"),
    ):
        spoilt = as_object(report(result()))
        spoil(spoilt)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, schema())


def test_no_bare_infinity_or_nan_reaches_the_file(varied):
    text = as_json(varied)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert next(c for c in json.loads(text)["clauses"] if c["id"] == "SDPA-INF")["distance"] is None


def test_foreign_text_is_cleaned_bounded_and_valid_unicode(varied):
    text = as_json(varied)
    assert len(text.encode("utf-8")) < 60_000
    assert "\\u001b" not in text
    assert "\\ud800" not in text


def test_clauses_come_in_the_order_of_the_law_whatever_the_order_of_the_run(report, result):
    first = result(Verdict.PASS, "SDPA-A", line=3, document="attention")
    second = result(Verdict.PASS, "SDPA-B", line=9, document="attention")
    later = result(Verdict.PASS, "MASK-A", line=1, document="masks")
    assert as_json(report(later, second, first)) == as_json(report(first, second, later))
    assert [c["id"] for c in as_object(report(later, second, first))["clauses"]] == ["SDPA-A", "SDPA-B", "MASK-A"]


def test_the_ledger_adds_up(varied):
    ledger = as_object(varied)["ledger"]
    assert ledger.pop("clauses") == sum(ledger.values()) == len(varied.results)


def test_an_incomplete_report_says_so_and_does_not_conform(report, result):
    whole, partial = as_object(report(result())), as_object(report(result(), complete=False))
    assert (whole["complete"], whole["conforms"]) == (True, True)
    assert (partial["complete"], partial["conforms"]) == (False, False)


def test_an_undeclared_choice_is_listed_with_the_line_that_declares_it(varied):
    first, second = as_object(varied)["undeclared"]
    assert first == {
        "component": "TransformerBlock", "choice": "norm_eps", "declared": 1e-5, "actual": 1e-6, "table": "variant",
        "line": "norm_eps = 1e-6",
        "message": "TransformerBlock: this is norm_eps = 1e-6, the canonical variant is norm_eps = 1e-5: "
        "declare `norm_eps = 1e-6` under [variant] in conform.toml, or change it",
    }  # fmt: skip
    assert (second["declared"], second["actual"]) == (False, True)
