from dataclasses import replace
from xml.etree import ElementTree as ET

from conformkit.conformance.apps.grade.outputs.junit import as_junit


def outcomes(suite):
    return {case.get("name"): next((child.tag for child in case), "passed") for case in suite.iter("testcase")}


def test_a_suite_a_submission_and_a_case_a_group(graded, lost):
    root = ET.fromstring(as_junit([graded(), lost]))
    first, second = root.findall("testsuite")
    assert (first.get("name"), outcomes(first)) == ("ada", {"Attention": "failure", "Several heads": "passed"})
    assert outcomes(second) == {"Attention": "failure", "Several heads": "failure", "outcome": "error"}
    assert "5 of 10 points" in first.find(".//failure").get("message")
    assert first.find(".//failure").text == "SDPA-SCALE"


def test_the_counts_are_those_of_the_cases(graded, lost):
    root = ET.fromstring(as_junit([graded(), lost]))
    for element in (root, *root.findall("testsuite")):
        for name, tag in {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            assert int(element.get(name)) == len(list(element.iter(tag)))
    assert root.get("time") == "5.000"


def test_a_group_of_which_nothing_applies_is_skipped(graded):
    empty = replace(graded().groups[1], points=0.0, max_points=0.0, clauses=0, passed=0)
    (suite,) = ET.fromstring(as_junit([graded(groups=(empty,))])).findall("testsuite")
    assert outcomes(suite) == {"Several heads": "skipped"}


def test_hostile_text_leaves_the_xml_well_formed(hostile, graded):
    root = ET.fromstring(as_junit([hostile, graded()]))
    assert len(root.findall("testsuite")) == 2
    assert len(list(root.iter("testcase"))) == 5
