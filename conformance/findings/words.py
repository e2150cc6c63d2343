"""Findings in words: the only place that says in English what a check found."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from conformkit.conformance.findings.finding import FactValue, Finding, Kind
from conformkit.conformance.findings.outline import ENDED, LOSSES, NO_ARRAY, NOWHERE, shape
from conformkit.conformance.findings.threshold import Pattern, Threshold

__all__ = ["SIZE_WORDS", "begins", "details", "message", "number"]

SIZE_WORDS = {
    "tokens": "T", "keys": "Tk", "batch": "batch size", "num_heads": "number of heads", "head_width": "head width",
    "vocab_size": "vocabulary", "num_layers": "number of layers",
    "num_segments": "number of segments", "num_classes": "number of classes", "patch_size": "patch size",
    "channels": "number of channels", "patches_per_side": "patches per side",
    "num_encoder_layers": "number of encoder layers", "num_decoder_layers": "number of decoder layers",
    "new_ids": "number of new ids", "beams": "number of beams", "prompt": "length of the prompt",
}  # fmt: skip
"""Names of sizes for the reader, by those of the contract."""
_ROWS = 5
"""Maximum number of rows to list."""


def message(found: Finding) -> str:
    """Return the finding as one sentence."""
    if found.verbatim:
        return found.label
    said = _SAYS[found.kind](found)
    if found.threshold is None or found.kind is Kind.LOST:
        return said
    where = begins(found.threshold)
    return f"{said} ({where})" if found.kind in _RAISED else f"{where}: {said}"


def details(found: Finding) -> tuple[str, ...]:
    """Return further lines: how many entries differ, and under which setting."""
    lines = [*found.notes]
    if found.relation is not None and not found.verbatim:
        lines.insert(0, str(found.relation))
    if found.kind is Kind.NUMBERS and not found.verbatim:
        lines.insert(0, _how_many(found))
    if found.rows:
        which = ", ".join(map(str, found.rows[:_ROWS])) + (", …" if len(found.rows) > _ROWS else "")
        lines.insert(0, f"only row {which} is not finite: softmax returns NaN where every key of a row is masked")
    return (*lines, *([f"with {found.setting}"] if found.setting is not None else []))


def _of_numbers(found: Finding) -> str:
    return f"{_entry(found)} is {number(found.got)}, expected {number(found.want)}"


def _how_many(found: Finding) -> str:
    worst = found.worst if found.worst is not None else np.inf
    off = (
        f"off by {worst:.3g}" if found.of == 1 else f"{found.bad} of {found.of} entries differ, at most by {worst:.3g}"
    )
    far = f", {found.ratio:.3g} times the tolerance" if found.ratio is not None and np.isfinite(worst) else ""
    how = "compared exactly" if found.tolerance is None else f"relative tolerance {found.tolerance:.0e}"
    return f"{off}{far} ({found.form}, {how})"


def _of_shapes(found: Finding) -> str:
    said = f"{found.label} has shape {_shape(found.got)}, expected {_shape(found.want)}"
    ours, theirs = found.got, found.want
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and sorted(ours) == sorted(theirs):
        return f"{said}: the axes are in another order"
    return said


def _not_finite(found: Finding) -> str:
    return f"{_entry(found)} is {found.got}, expected a finite number; {found.bad} of {found.of} are not"


def _not_zero(found: Finding) -> str:
    bound = f"at most {found.allowed:g}" if found.allowed else "exactly 0"
    return f"{_entry(found)} is {found.got:.6g}, expected {bound}; {found.bad} of {found.of} entries are too large"


def _lost(found: Finding) -> str:
    return f"{LOSSES[found.error]}: {found.said}"


_SAYS: Mapping[Kind, Callable[[Finding], str]] = {
    Kind.NUMBERS: _of_numbers,
    Kind.SHAPE: _of_shapes,
    Kind.FORMAT: lambda found: f"{found.label} is {found.got}, expected {found.want}",
    Kind.NOT_FINITE: _not_finite,
    Kind.NOT_ZERO: _not_zero,
    Kind.UNCHANGED: lambda found: f"{found.label} is unchanged, expected a difference of more than {found.allowed:g}",
    Kind.ACCEPTED: lambda found: f"{found.label} was accepted, expected an exception",
    Kind.UNTRUE: lambda found: found.label,
    Kind.NO_EFFECT: lambda found: found.label,
    Kind.RAISED: lambda found: f"it raised {found.error}: {found.said}",
    Kind.NO_ARRAY: lambda found: f"{NO_ARRAY}: {found.said}",
    Kind.NOWHERE: lambda found: f"{NOWHERE}: {found.said}",
    Kind.ENDED: lambda found: f"{ENDED}: {found.said}",
    Kind.LOST: _lost,
}
_RAISED = frozenset({Kind.RAISED, Kind.NO_ARRAY, Kind.NOWHERE, Kind.ENDED})


def _shape(extents: FactValue) -> str:
    return shape(extents) if isinstance(extents, tuple) else str(extents)


def number(value: object) -> str:
    """Return one number with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _entry(found: Finding) -> str:
    """Name one entry: for `output, with a mask,` at (0, 2), `output[0, 2], with a mask,`."""
    index = f"[{', '.join(map(str, found.at))}]" if found.at else ""
    name, comma, condition = found.label.partition(", ")
    if not comma or any(name.count(left) > name.count(right) for left, right in ("()", "[]")):
        return f"{found.label}{index}"
    return f"{name}{index}, {condition.removesuffix(',')},"


def begins(found: Threshold) -> str:
    """Return at which sizes it does not hold: `right up to T = 256, wrong from T = 257 on`."""
    said = _BEGINS[found.pattern](found, f" {found.joined} ".join(SIZE_WORDS.get(name, name) for name in found.sizes))
    return f"{said} and {begins(found.further)}" if found.further is not None else said


def _from(found: Threshold, size: str) -> str:
    but = f", but not at multiples of {found.step}" if found.step else ""
    return f"right up to {size} = {found.last}, wrong from {size} = {found.first} on{but}"


def _again(found: Threshold, size: str) -> str:
    which = "odd" if found.pattern is Pattern.ODD else f"a multiple of {found.step}"
    return f"wrong where {size} is {which}{f', from {found.first} on' if found.first > found.step else ''}"


def _small(found: Threshold, size: str) -> str:
    last = (found.beyond or 0) - 1
    upto = f"{size} = {found.first}" if last == found.first else f"{size} = {found.first} to {last}"
    return f"wrong at {upto}, right at {found.beyond}"


def _related(found: Threshold, size: str) -> str:
    del size
    one, other = (SIZE_WORDS.get(name, name) for name in found.sizes)
    rest = f" {'+' if found.more > 0 else '-'} {abs(found.more)}" if found.more else ""
    how = "equals" if found.pattern is Pattern.EQUAL else "is larger than"
    return f"wrong where {one} {how} {f'{found.ratio} × ' if found.ratio > 1 else ''}{other}{rest}"


_BEGINS: Mapping[Pattern, Callable[[Threshold, str], str]] = {
    Pattern.FROM: _from,
    Pattern.ALONE: lambda it, size: f"wrong at {size} = {it.first}, right at {it.last} and {it.beyond}",
    Pattern.SOMEWHERE: lambda it, size: f"wrong at {size} = {it.first}",
    Pattern.MULTIPLES: _again,
    Pattern.ODD: _again,
    Pattern.SCATTERED: lambda it, size: f"wrong from {size} = {it.first} on, but not at every size",
    Pattern.SMALL: _small,
    Pattern.LARGER: _related,
    Pattern.EQUAL: _related,
    Pattern.THESE: lambda it, size: "wrong at these sizes, right at others",  # noqa: ARG005 - one signature for all
}
