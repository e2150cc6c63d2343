"""Findings written as one line, for tests that need many: `output[0] is 0.84, expected 0.80 (float64, exactly)`."""

from __future__ import annotations

import re

from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.setting import Setting

__all__ = ["found"]

_NUMBERS = re.compile(
    r"(.+?)(?:\[([\d, ]+)\])? is (\S+), expected (\S+) \((\w+), (?:exactly|relative tolerance (\S+))\)"
)
_NOT_ZERO = re.compile(r"(.+?)(?:\[([\d, ]+)\])? is (\S+), expected exactly 0; (\d+) of (\d+) entries")


def found(line: str, *notes: str) -> Finding:
    """Return the finding that a line describes; a note that begins with `with` is its setting."""
    settings = [Setting.of(note.removeprefix("with ")) for note in notes if note.startswith("with ")]
    rest = {
        "notes": tuple(note for note in notes if not note.startswith("with ")), "setting": (*settings, None)[0],
        "sampled": bool(re.search(r" draws|was sampled", line)),
    }  # fmt: skip
    if match := _NUMBERS.fullmatch(line):
        label, at, got, want, form, tolerance = match.groups()
        allowed = float(tolerance) if tolerance else None
        return Finding(Kind.NUMBERS, label, float(got), float(want), _index(at), tolerance=allowed, form=form, **rest)
    if match := _NOT_ZERO.fullmatch(line):
        label, at, got, bad, of = match.groups()
        return Finding(Kind.NOT_ZERO, label, float(got), 0.0, _index(at), int(bad), int(of), **rest)
    return Finding(Kind.UNTRUE, line, **rest)


def _index(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split(", "))) if text else ()
