"""What may be disclosed of a failure on hidden draws: its kind, sizes, number formats, its error in powers of ten.

A student may submit many times and read every report: a wanted number in it gives away an answer, and an input in it
can be solved at home. So an `Outline` is made only here, from facts that contain no numbers of a draw. The type checker
refuses any other string in its place, and of a failure without one only the clause's title is shown.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Mapping, Sequence
from typing import NewType

__all__ = [
    "ABSENT",
    "ACCEPTED",
    "BROKEN",
    "ENDED",
    "LOSSES",
    "NOT_FINITE",
    "NOT_ZERO",
    "NOWHERE",
    "NO_ARRAY",
    "SENSELESS",
    "SILENT",
    "UNCHANGED",
    "WITHHELD",
    "Outline",
    "accepted_setting",
    "formats",
    "off",
    "order",
    "placed",
    "raised",
    "shapes",
    "under_setting",
]

Outline = NewType("Outline", str)

WITHHELD = Outline("")
BROKEN = Outline("it does not hold")
NOT_FINITE = Outline("some numbers are not finite")
NOT_ZERO = Outline("numbers that must be 0 are not")
UNCHANGED = Outline("two results that must differ are the same")
ACCEPTED = Outline("an input that must be refused was accepted")
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
_SIZE = r"[A-Za-z_]{1,14} ?= ?(?:\d{1,3}|True|False|None)"
_SETTING = re.compile(rf"{_SIZE}(?:, {_SIZE})*")
_WORD = re.compile(r"[a-z_]{1,20}(?:16|32|64)?")


def shapes(got: Sequence[int], want: Sequence[int]) -> Outline:
    """Describe both shapes; one too large for any draw is not shown."""
    wanted = f"want {_shape(want)}"
    small = len(got) <= _RANK and all(extent <= _MOST for extent in got)
    return Outline(f"the shape is {_shape(got)}, {wanted}" if small else f"the shape is different, {wanted}")


def formats(got: str, want: str) -> Outline:
    """Describe both number formats."""
    shown, wanted = (name if name in _FORMATS else "another" for name in (got, want))
    return Outline(f"the number format is {shown}, want {wanted}")


def off(distance: float | None) -> Outline:
    """Describe how far numbers are from those wanted; None if they had to be equal."""
    power = order(distance)
    if power is None or power < 10.0:  # within a factor of ten, a power of ten is meaningless
        return Outline("numbers are wrong")
    return Outline(f"numbers are off by about 10^{round(math.log10(power))} times what is allowed")


def order(distance: float | None) -> float | None:
    """Return the power of ten at or below a distance: its other digits could reveal wanted numbers."""
    if distance is None or not math.isfinite(distance):
        return None
    return 10.0 ** math.floor(math.log10(distance)) if distance > 0.0 else 0.0


def raised(error: str, message: str) -> Outline:
    """Describe an exception: its type if well known, its message if a framework's about sizes and formats."""
    kind = error if error in _ERRORS else "a custom exception"
    known = any(pattern.fullmatch(message) for pattern in _MESSAGES)
    return Outline(f"it raised {kind}: {message.strip()}" if known else f"it raised {kind}")


def placed(outline: Outline, setting: Outline) -> Outline:
    """Add the setting, to a generic text if the outline is empty."""
    return Outline(f"{outline or BROKEN}, with {setting}") if setting else outline


def accepted_setting(value: object) -> Outline:
    """Return a setting that consists of sizes, flags and plain words; an empty outline for any other."""
    if isinstance(value, dict):
        parts = [f"{name} = {accepted_setting(item)}" for name, item in value.items()]
        known = all(_WORD.fullmatch(str(name)) and accepted_setting(item) for name, item in value.items())
        return Outline(", ".join(parts)) if known else WITHHELD
    if isinstance(value, tuple):
        inner = [accepted_setting(item) for item in value]
        return Outline(f"({', '.join(inner)})") if all(inner) else WITHHELD
    known = isinstance(value, bool) or (type(value) is int and 0 <= value <= _MOST)
    return Outline(str(value)) if known or (isinstance(value, str) and _WORD.fullmatch(value)) else WITHHELD


def under_setting(text: str) -> Outline:
    """Return a setting given as text, if it consists only of sizes by name."""
    return Outline(text) if _SETTING.fullmatch(text) else WITHHELD


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
