from xml.etree import ElementTree as ET

import pytest

from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.results import Undeclared, Verdict
from conformkit.conformance.report.junit import as_junit
from conformkit.spec.clauses import Level


def outcome(case):
    return next((child.tag for child in case if child.tag != "system-out"), "passed")


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        (Verdict.PASS, "passed"), (Verdict.FAIL, "failure"), (Verdict.ERROR, "error"), (Verdict.CRASH, "error"),
        (Verdict.TIMEOUT, "error"), (Verdict.BLOCKED, "skipped"), (Verdict.NOT_APPLICABLE, "skipped"),
        (Verdict.NOT_IMPLEMENTED, "skipped"), (Verdict.NOT_RUN, "skipped"),
    ],
    ids=str,
)  # fmt: skip
def test_each_verdict_has_its_element(report, result, verdict, tag):
    root = ET.fromstring(as_junit(report(result(verdict), result(Verdict.FAIL, "SDPA-OTHER", line=99))))
    case = root.findall(".//testcase")[0]
    assert outcome(case) == tag
    assert case.get("classname") == "ScaledDotProductAttention"
    assert case.get("name").startswith("SDPA-SCALE ")


def test_the_counts_are_those_of_the_cases(report, result):
    made = report(result(), result(Verdict.FAIL, "A-B"), result(Verdict.ERROR, "A-C"), result(Verdict.BLOCKED, "A-D"))
    suite = ET.fromstring(as_junit(made)).find("testsuite")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "1", "1", "1"]


def test_a_broken_should_leaves_the_file_green(report, result):
    root = ET.fromstring(as_junit(report(result(), result(Verdict.FAIL, "A-SOFT", level=Level.SHOULD))))
    assert [outcome(case) for case in root.iter("testcase")] == ["skipped", "passed"]


@pytest.mark.parametrize(
    "changes", [{"complete": False}, {"missing": ["FeedForward"]}], ids=["incomplete", "missing component"]
)
def test_a_report_that_does_not_conform_is_never_all_green(report, result, changes):
    cases = list(ET.fromstring(as_junit(report(result(), **changes))).iter("testcase"))
    assert [outcome(case) for case in cases] == ["passed", "failure"]
    assert "does not conform" in cases[-1].find("failure").get("message")


def test_an_empty_run_is_red(report):
    assert [outcome(case) for case in ET.fromstring(as_junit(report())).iter("testcase")] == ["failure"]


def test_hostile_text_leaves_the_xml_well_formed(report, result):
    evil = "]]></failure><testcase name='x'/>\x00\x0b\x1b[31m\ufffe\uffff\ud800 &lol;"
    made = report(
        result(Verdict.FAIL, message=evil, details=(evil,), output=evil, where=evil),
        result(Verdict.NOT_RUN, "A-B", reason=evil),
        implementation=evil,
        location=evil,
    )
    root = ET.fromstring(as_junit(made))
    assert len(root.findall(".//testcase")) == 2


def test_an_undeclared_choice_is_a_property_and_no_case(report, result):
    relu = Undeclared("FeedForward", "activation", "gelu", "relu", "variant", 'activation = "relu"')
    root = ET.fromstring(as_junit(report(result(Verdict.FAIL), undeclared=[relu])))
    (told,) = root.findall(".//property[@name='undeclared']")
    assert told.get("value", "").startswith("FeedForward: this is ReLU")
    assert [outcome(case) for case in root.iter("testcase")] == ["failure"]


def test_what_is_declared_is_told_as_properties(report, result):
    scaled = Excuse("weights", "components.FeedForward.weights", "FeedForward", "up of FeedForward holds 2 * up")
    root = ET.fromstring(as_junit(report(result(), excuses=[scaled])))
    assert [told.get("value") for told in root.findall(".//property[@name='declared']")] == [scaled.words]
