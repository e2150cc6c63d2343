"""The class as JUnit XML: one suite per submission, one case per group, and one if it was not judged."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from conformkit.conformance.apps.grade.outputs.wording import group_line, outcome_line, points_line
from conformkit.conformance.apps.grade.record import Grade, Group
from conformkit.conformance.report.junit import safe

__all__ = ["as_junit"]


def as_junit(grades: Sequence[Grade], title: str = "") -> str:
    """Return the document."""
    suites = [_suite(grade) for grade in grades]
    named = {"name": safe(title)} if title else {}
    root = ET.Element("testsuites", named | _counts(suites, sum(grade.seconds for grade in grades)))
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(grade: Grade) -> ET.Element:
    suite = ET.Element("testsuite", {"name": safe(grade.submission.name)})
    facts = ET.SubElement(suite, "properties")
    for name, value in {
        "id": grade.submission.id, "source": grade.submission.source, "outcome": grade.outcome.value,
        "points": points_line(grade.points, grade.max_points),
    }.items():  # fmt: skip
        ET.SubElement(facts, "property", {"name": name, "value": safe(value)})
    suite.extend(_case(grade, group) for group in grade.groups)
    trouble = outcome_line(grade)
    if trouble:
        case = ET.SubElement(suite, "testcase", {"classname": grade.submission.id, "name": "outcome"})
        ET.SubElement(case, "error", {"type": grade.outcome.value, "message": safe(trouble)})
    suite.attrib |= _counts([suite], grade.seconds)
    return suite


def _case(grade: Grade, group: Group) -> ET.Element:
    case = ET.Element("testcase", {"classname": grade.submission.id, "name": safe(group.title or group.name)})
    if not group.clauses and not group.failed:
        ET.SubElement(case, "skipped", {"message": safe(group_line(group))})
    elif group.failed or group.required:
        message = f"{points_line(group.points, group.max_points)}: {group_line(group)}"
        body = ET.SubElement(case, "failure", {"type": "points", "message": safe(message)})
        body.text = safe("\n".join(group.failed))
    return case


def _counts(suites: Sequence[ET.Element], seconds: float) -> dict[str, str]:
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    found = {name: str(sum(1 for suite in suites for _ in suite.iter(tag))) for name, tag in tags.items()}
    return {**found, "time": f"{seconds:.3f}"}
