"""What may be disclosed of a finding on hidden draws: its kind, sizes, number formats, its error in powers of ten.

A student may submit many times and read every report: a wanted number in it gives away an answer, and an input in it
can be solved at home. So an `Outline` is made only here, from facts that contain no numbers of a draw. The type checker
refuses any other string in its place, and of a finding without one only the clause's title is shown.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Mapping, Sequence
from typing import NewType

from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.setting import Setting

__all__ = [
    "ABSENT",
    "BROKEN",
    "ENDED",
    "LOSSES",
    "NOWHERE",
    "NO_ARRAY",
    "SENSELESS",
    "SILENT",
    "WITHHELD",
    "Outline",
    "order",
    "outline",
    "shape",
    "veiled",
]

Outline = NewType("Outline", str)

WITHHELD = Outline("")
BROKEN = Outline("it does not hold")
ENDED = Outline("it tried to exit the process")
NO_ARRAY = Outline("it did not return an array")
NOWHERE = Outline("its weights are not where they were at first")
SENSELESS = Outline("the test cannot interpret the result")
SILENT = Outline("it does not apply to this implementation")
ABSENT = Outline("it needs a component that is not exported")
LOSSES: Mapping[str, Outline] = {
    "timeout": Outline("it exceeded the time limit"),
    "signal": Outline("it crashed"),
    "exit": Outline("it ended its process"),
    "memory": Outline("it exceeded the memory limit"),
    "processes": Outline("it exceeded the limit on processes"),
    "output": Outline("it exceeded the limit on output"),
    "protocol": Outline("it broke the connection to its process"),
}
"""How a worker was lost."""

_MOST = 999
"""Extents larger than any draw's could carry a message from the implementation."""
_RANK = 6
_FORMATS = frozenset(
    ["bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
) | {"AxisError", "LinAlgError", "OutOfMemoryError"}
_SIZES = r"[\[(]\d{1,3}(?:, ?\d{1,3}){0,5},?[\])]"
_MESSAGES = tuple(
    re.compile(pattern)
    for pattern in (
        r"mat1 and mat2 shapes cannot be multiplied \(\d{1,3}x\d{1,3} and \d{1,3}x\d{1,3}\)",
        r"The size of tensor a \(\d{1,3}\) must match the size of tensor b \(\d{1,3}\) at non-singleton dimension \d",
        rf"Expected size for first two dimensions of batch2 tensor to be: {_SIZES} but got: {_SIZES}\.",
        r"batch1 and batch2 must have same batch size, got \d{1,3} and \d{1,3}",
        rf"shape '{_SIZES}' is invalid for input of size \d{{1,5}}",
        r"Dimension out of range \(expected to be in range of \[-?\d, \d\], but got -?\d\)",
        r"expected scalar type (?:Float|Double|Long|Int|Half|Bool) but found (?:Float|Double|Long|Int|Half|Bool)",
        r"mat1 and mat2 must have the same dtype, but got (?:Float|Double|Half) and (?:Float|Double|Half)",
        r"expected m1 and m2 to have the same dtype, but got: (?:float|double|half) != (?:float|double|half)",
        rf"operands could not be broadcast together with shapes {_SIZES} {_SIZES} ?",
        rf"shapes {_SIZES} and {_SIZES} not aligned: \d{{1,3}} \(dim \d\) != \d{{1,3}} \(dim \d\)",
        rf"cannot reshape array of size \d{{1,5}} into shape {_SIZES}",
        r"(?:not enough|too many) values to unpack \(expected \d(?:, got \d)?\)",
        r"index out of range in self",
    )
)
"""Messages of frameworks about sizes and formats that do not fit, verbatim: they contain nothing else."""
_NAME = re.compile(r"[A-Za-z_]{1,20}(?:16|32|64)?")
_WORD = re.compile(r"[a-z_]{1,20}(?:16|32|64)?")


_OF_KINDS: Mapping[Kind, Outline] = {
    Kind.NOT_FINITE: Outline("some numbers are not finite"),
    Kind.NOT_ZERO: Outline("numbers that must be 0 are not"),
    Kind.UNCHANGED: Outline("two results that must differ are the same"),
    Kind.ACCEPTED: Outline("an input that must be refused was accepted"),
    Kind.NO_ARRAY: NO_ARRAY,
    Kind.NOWHERE: NOWHERE,
    Kind.ENDED: ENDED,
}


def outline(found: Finding) -> Outline:
    """Return what may be told of a finding, with its setting if that consists of sizes, flags and plain words."""
    said = _said(found)
    where = _setting(found.setting)
    return Outline(f"{said or BROKEN}, with {where}") if where else said


def veiled(found: Finding) -> Finding:
    """Return a finding that holds nothing but what may be told."""
    return Finding(found.kind, outline(found) or BROKEN, verbatim=True)


def order(distance: float | None) -> float | None:
    """Return the power of ten at or below a distance: its other digits could reveal wanted numbers."""
    if distance is None or not math.isfinite(distance):
        return None
    return 10.0 ** math.floor(math.log10(distance)) if distance > 0.0 else 0.0


def _said(found: Finding) -> Outline:
    match found.kind:
        case Kind.NUMBERS:
            return _off(found.ratio)
        case Kind.SHAPE if isinstance(found.got, tuple) and isinstance(found.want, tuple):
            return _shapes(found.got, found.want)
        case Kind.FORMAT:
            return _formats(str(found.got), str(found.want))
        case Kind.RAISED:
            return _raised(found.error, found.said)
        case Kind.LOST:
            return LOSSES[found.error]
    return _OF_KINDS.get(found.kind, WITHHELD)


def _shapes(got: Sequence[int], want: Sequence[int]) -> Outline:
    """Describe both shapes; one too large for any draw is not shown."""
    wanted = f"want {shape(want)}"
    small = len(got) <= _RANK and all(extent <= _MOST for extent in got)
    return Outline(f"the shape is {shape(got)}, {wanted}" if small else f"the shape is different, {wanted}")


def _formats(got: str, want: str) -> Outline:
    """Describe both number formats."""
    shown, wanted = (name if name in _FORMATS else "another" for name in (got, want))
    return Outline(f"the number format is {shown}, want {wanted}")


def _off(distance: float | None) -> Outline:
    """Describe how far numbers are from those wanted; None if they had to be equal."""
    power = order(distance)
    if power is None or power < 10.0:  # within a factor of ten, a power of ten is meaningless
        return Outline("numbers are wrong")
    return Outline(f"numbers are off by about 10^{round(math.log10(power))} times what is allowed")


def _raised(error: str, message: str) -> Outline:
    """Describe an exception: its type if well known, its message if a framework's about sizes and formats."""
    kind = error if error in _ERRORS else "a custom exception"
    known = any(pattern.fullmatch(message) for pattern in _MESSAGES)
    return Outline(f"it raised {kind}: {message.strip()}" if known else f"it raised {kind}")


def _setting(setting: Setting | None) -> Outline:
    """Return a setting that a clause chose; what was found by trying is a result."""
    return WITHHELD if setting is None or setting.found else _accepted(setting.value)


def _accepted(value: object) -> Outline:
    """Return a setting that consists of sizes, flags and plain words; an empty outline for any other."""
    if isinstance(value, dict):
        parts = [f"{name} = {_accepted(item)}" for name, item in value.items()]
        known = all(_NAME.fullmatch(str(name)) and _accepted(item) for name, item in value.items())
        return Outline(", ".join(parts)) if known else WITHHELD
    if isinstance(value, tuple):
        inner = [_accepted(item) for item in value]
        return Outline(f"({', '.join(inner)})") if all(inner) else WITHHELD
    known = value is None or isinstance(value, bool) or (type(value) is int and 0 <= value <= _MOST)
    return Outline(str(value)) if known or (isinstance(value, str) and _WORD.fullmatch(value)) else WITHHELD


def shape(extents: Sequence[int]) -> str:
    """Return the extents of an array as NumPy prints them."""
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"
