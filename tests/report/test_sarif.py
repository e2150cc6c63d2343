import json
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest

from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.places import place, place_of_refusal
from conformkit.conformance.report.sarif import as_sarif, refusal_as_sarif
from conformkit.spec.clauses import Level

from .sarif_rules import LOG

RULES = jsonschema.Draft202012Validator(LOG, format_checker=jsonschema.FormatChecker())
LEVELS = {"none", "note", "warning", "error"}


def run_of(text):
    """Check what the standard requires of every log, and return its only run."""
    log = json.loads(text)
    assert not list(RULES.iter_errors(log))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert all(type(invocation["executionSuccessful"]) is bool for invocation in run["invocations"])
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in LEVELS
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert len(result["locations"]) == 1  # GitHub refuses the whole file otherwise
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert not physical["artifactLocation"]["uri"].startswith("/")
            assert physical["region"]["startLine"] >= 1
    for invocation in run["invocations"]:
        for notification in invocation.get("toolConfigurationNotifications", []):
            assert notification["message"]["text"]
            assert notification["level"] in LEVELS
            assert set(notification) <= {"descriptor", "level", "message", "properties"}
            assert notification["descriptor"]["id"]
    return run


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", "failed"), ("level", "fatal"), ("locations", [{"physicalLocation": {"region": {"startLine": 1}}}]),
     ("message", {}), ("line", 3), ("ruleIndex", "0")],
)  # fmt: skip
def test_what_the_standard_forbids_is_found(told, name, value):
    """Would break if the rules let anything pass, so that no log could fail."""
    log = json.loads(as_sarif(told))
    log["runs"][0]["results"][0][name] = value
    assert list(RULES.iter_errors(log))


@pytest.fixture
def package(tmp_path):
    (tmp_path / "my pkg").mkdir()
    (tmp_path / "my pkg" / "__init__.py").write_text("a = 1\nb = 2\n")
    return tmp_path / "my pkg"


@pytest.mark.parametrize("which", ["told", "hostile"])
def test_every_log_is_what_the_standard_demands(request, which):
    run_of(as_sarif(request.getfixturevalue(which)))


def test_a_result_for_each_red_clause_and_a_rule_for_every_clause(told):
    run = run_of(as_sarif(told))
    red = {r.clause.id for r in told.results if r.verdict.red}
    assert {result["ruleId"] for result in run["results"]} == red
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {r.clause.id for r in told.results}


def test_a_clause_that_is_not_binding_is_a_warning(report, result):
    run = run_of(as_sarif(report(result(Verdict.FAIL, "A-MUST"), result(Verdict.FAIL, "A-SOFT", level=Level.SHOULD))))
    assert {r["ruleId"]: r["level"] for r in run["results"]} == {"A-MUST": "error", "A-SOFT": "warning"}


def test_the_line_that_raised_is_the_location(report, result, package):
    made = report(result(Verdict.ERROR, where="my pkg/__init__.py:2 in forward"), location=str(package))
    (found,) = run_of(as_sarif(made, package.parent))["results"]
    physical = found["locations"][0]["physicalLocation"]
    assert Path(package.parent, unquote(physical["artifactLocation"]["uri"])) == package / "__init__.py"
    assert " " not in physical["artifactLocation"]["uri"]
    assert physical["region"] == {"startLine": 2}


@pytest.mark.parametrize(
    "where",
    ["", "my pkg/gone.py:3", "../../etc/passwd.py:1", "my pkg/__init__.py:0", "my pkg/__init__.py", "<string>:1"],
    ids=["none", "no-such-file", "outside", "line-0", "no-line", "no-file"],
)
def test_what_names_no_line_of_the_users_files_belongs_to_the_first_file(report, result, package, where):
    made = report(result(Verdict.ERROR, where=where), location=str(package))
    assert _place(made, package.parent) == ("my pkg/__init__.py", 1)


def _place(report, root):
    (found,) = run_of(as_sarif(report, root))["results"]
    physical = found["locations"][0]["physicalLocation"]
    return unquote(physical["artifactLocation"]["uri"]), physical["region"]["startLine"]


def test_a_wrong_number_belongs_to_the_class_that_the_clause_is_about(report, result, package):
    sources = {"FeedForward": "my pkg/__init__.py:1", "MultiHeadAttention": "my pkg/__init__.py:2"}
    wrong = result(Verdict.FAIL, component="MultiHeadAttention")
    assert _place(report(wrong, location=str(package), sources=sources), package.parent) == ("my pkg/__init__.py", 2)
    any_part = result(Verdict.FAIL, component="all", details=("with MultiHeadAttention",))
    assert _place(report(any_part, location=str(package), sources=sources), package.parent)[1] == 2


def test_code_outside_of_the_checkout_has_a_location_without_the_path_to_it(report, result, package, tmp_path):
    (tmp_path / "checkout").mkdir()
    made = report(result(Verdict.FAIL), location=str(package))
    assert _place(made, tmp_path / "checkout") == ("my pkg/__init__.py", 1)
    assert _place(report(result(Verdict.FAIL), location="", implementation="a b/../c"), tmp_path)[0] == "a_b_.._c.py"
    assert str(tmp_path) not in as_sarif(report(result(Verdict.FAIL)), tmp_path)


def test_no_viewer_makes_a_link_of_what_an_implementation_says(hostile):
    texts = [r["message"]["text"] for r in run_of(as_sarif(hostile))["results"]]
    assert any("[link]" in text for text in texts)
    assert not any("](" in text for text in texts)


def test_with_few_hints_no_rule_reveals_the_fix(report, result):
    full, few = (as_sarif(report(result(Verdict.FAIL), hints=hints)) for hints in (3, 1))
    fix = run_of(full)["tool"]["driver"]["rules"][0]["help"]["text"].partition("Fix: ")[2].partition("\n")[0]
    assert fix
    assert fix not in few


def test_a_finding_keeps_its_identity_when_its_line_moves(report, result):
    prints = [
        run_of(as_sarif(report(result(Verdict.ERROR, where=f"mypkg/a.py:{line}", message=f"it raised {line}"))))
        for line in (3, 40)
    ]
    first, second = (run["results"][0]["partialFingerprints"] for run in prints)
    assert first == second


def test_a_rule_has_the_clauses_page_where_there_are_pages(told):
    rules = {rule["id"]: rule for rule in run_of(as_sarif(told))["tool"]["driver"]["rules"]}
    assert rules["SDPA-SCALE"]["helpUri"] == "https://course.example/law/law/attention.html#sdpa-scale"
    assert "helpUri" not in rules["SDPA-V1"]


def test_what_is_declared_is_told_as_notifications_of_the_run(report, result):
    scaled = Excuse("weights", "components.FeedForward.weights", "FeedForward", "up of FeedForward holds [2](x) * up")
    only_bool = Excuse("masks", "components.SelfAttention.mask.kinds", "SelfAttention", "takes bool masks only")
    run = run_of(as_sarif(report(result(), excuses=[scaled, only_bool])))
    told = run["invocations"][0]["toolConfigurationNotifications"]
    assert [(one["descriptor"]["id"], one["level"]) for one in told] == [
        ("declared/weights", "warning"),
        ("declared/masks", "note"),
    ]
    assert [one["properties"]["component"] for one in told] == ["FeedForward", "SelfAttention"]
    assert "](" not in told[0]["message"]["text"]
    assert [one["words"] for one in run["properties"]["declared"]["excuses"]] == [scaled.words, only_bool.words]


def test_without_excuses_a_run_has_no_notifications(report, result):
    assert run_of(as_sarif(report(result())))["invocations"] == [{"executionSuccessful": True}]


def place_of(text):
    (result,) = run_of(text)["results"]
    (found,) = result["locations"]
    return found["physicalLocation"]


@pytest.mark.parametrize(
    ("where", "file", "line"),
    [
        ("mypkg/a.py:3 in <module>", "mypkg/a.py", 3),
        ("", "mypkg/__init__.py", 1),
        ("mypkg/conform.toml:2", "mypkg/conform.toml", 2),
    ],
)
def test_code_that_cannot_be_judged_is_one_error_at_its_line(tmp_path, monkeypatch, where, file, line):
    package = tmp_path / "mypkg"
    package.mkdir()
    for name in ("__init__.py", "a.py", "conform.toml"):
        (package / name).write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    text = refusal_as_sarif("mypkg", "importing it raised ZeroDivisionError", where)
    place = place_of(text)
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (file, line)
    assert run_of(text)["invocations"] == [{"executionSuccessful": False}]
    assert "importing it raised ZeroDivisionError" in text


def test_code_that_cannot_be_judged_has_a_location_outside_of_the_checkout_too(tmp_path):
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").write_text("x = 1\n")
    text = refusal_as_sarif(str(tmp_path / "mypkg"), "it raised", "mypkg/__init__.py:1", tmp_path / "checkout")
    assert place_of(text)["artifactLocation"] == {"uri": "mypkg/__init__.py"}
    assert place_of(refusal_as_sarif("no.such", "it raised", "", tmp_path))["artifactLocation"] == {"uri": "no.such.py"}


@pytest.mark.parametrize("name", ["loop", "x" * 300, "\u0416" * 150, "../" * 30 + "etc/passwd"], ids=len)
def test_a_line_in_a_file_that_cannot_be_is_no_location(report, result, package, name):
    """A traceback that named a link to itself ended the command with exit code 5, a long name with 2."""
    (package / "loop.py").symlink_to("loop.py")
    told = report(result(Verdict.ERROR, where=f"my pkg/{name}.py:3 in forward"), location=str(package), sources={})
    assert place(told, told.results[0], package.parent) == ("my pkg/__init__.py", 1)
    assert place_of_refusal(str(package), f"my pkg/{name}.py:3", package.parent) == ("my pkg/__init__.py", 1)
