"""A report as JUnit XML, which CI systems show: one testcase per clause, with the component as its classname.

`failure`: a binding clause failed. `error`: it raised, crashed or timed out. `skipped`: blocked, not implemented,
not applicable, not run, and clauses that failed but are not binding. Viewers show a file of passed and skipped cases as
green; so if a report does not conform although no case is red, one more red case is added, `conformkit.verdict`.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.causes import labelled
from conformkit.conformance.report.wording import (
    command,
    excuse_lines,
    in_order,
    seed_line,
    undeclared_line,
    verdict_line,
)
from conformkit.conformance.text import plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["as_junit", "safe"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report) -> str:
    """Return the report as a JUnit XML document."""
    cases = [_case(report, result) for result in in_order(report)]
    if not (report.conforms or report.settled) and not any(
        case.find("failure") is not None or case.find("error") is not None for case in cases
    ):
        cases.append(_verdict_case(report))
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": f"{report.seconds:.3f}",
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": safe(f"conformkit {report.implementation}"), **counts})
    suite.append(_properties(report))
    suite.extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(report: Report) -> ET.Element:
    element = ET.Element("properties")
    known = {
        "kit": kit_version(), "spec": SPEC_VERSION, "location": report.location, "framework": report.framework,
        "profile": report.profile, "level": report.level.value, "seed": seed_line(report),
        "isolation": report.isolation, "device": report.device, "dtype": report.dtype or "as declared",
        "complete": str(report.complete).lower(),
        "verdict": verdict_line(report),
    }  # fmt: skip
    for name, value in known.items():
        ET.SubElement(element, "property", {"name": name, "value": safe(value)})
    for line in excuse_lines(report):
        ET.SubElement(element, "property", {"name": "declared", "value": safe(line)})
    for found in report.undeclared:
        ET.SubElement(element, "property", {"name": "undeclared", "value": safe(undeclared_line(found))})
    return element


def _case(report: Report, result: Result) -> ET.Element:
    clause = result.clause
    case = ET.Element(
        "testcase",
        {"classname": clause.component, "name": f"{clause.id} {safe(clause.title)}", "time": f"{result.seconds:.6f}"},
    )
    if result.verdict is Verdict.PASS:
        return case
    if not result.verdict.red:
        ET.SubElement(case, "skipped", {"type": result.verdict.value, "message": safe(_reason(result))})
        return case
    sentence = safe(result.message or clause.title)
    if not report.breaks(result):
        message = f"{clause.level.value}, a warning: {sentence}"
        ET.SubElement(case, "skipped", {"type": "warning", "message": message})
        return case
    if report.accepted(result):
        ET.SubElement(case, "skipped", {"type": "known", "message": f"known, in {safe(report.baseline)}: {sentence}"})
        return case
    tag = "failure" if result.verdict is Verdict.FAIL else "error"
    body = ET.SubElement(case, tag, {"type": result.verdict.value, "message": sentence})
    body.text = safe(_body(report, result))
    if result.output:
        ET.SubElement(case, "system-out").text = safe(result.output)
    return case


def _verdict_case(report: Report) -> ET.Element:
    sentence = safe(verdict_line(report))
    case = ET.Element("testcase", {"classname": "conformkit", "name": "verdict", "time": "0.000000"})
    ET.SubElement(case, "failure", {"type": "verdict", "message": sentence}).text = sentence
    return case


def _reason(result: Result) -> str:
    if result.verdict is Verdict.BLOCKED and result.blocked_by:
        return f"not checked until {result.blocked_by} passes"
    return f"{result.verdict.value}: {result.reason}" if result.reason else result.verdict.value


def _body(report: Report, result: Result) -> str:
    lines = [
        result.message,
        *result.details,
        *(f"{label} {text}" for label, text in labelled(report, result)),
    ]
    return "\n".join(line for line in [*lines, f"again: {command(report, result.clause.id)}"] if line)


def safe(text: str) -> str:
    """Return foreign text without characters that XML does not allow."""
    return _NOT_XML.sub("", plain(text, 8000))
