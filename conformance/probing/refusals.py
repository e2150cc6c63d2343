"""Which sizes a component refuses: found by building a few of them before anything is judged.

Code that asserts an even width, or d_model divisible by twice the number of heads, is right and says what it needs.
Such a rule is found from what is accepted and what is refused, and sizes are then drawn by it. A rule is believed only
if every trial agrees with it: each size that it allows was built and called, each one that it forbids was refused in
words (`is_refusal`). A crash is no refusal, and an upper limit is never found: what is wrong or refused at large sizes
is for the clauses about sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.subject.component import Subject

__all__ = ["found_limits", "is_refusal", "limited"]

T = TypeVar("T")
_REFUSALS = frozenset({"AssertionError", "NotImplementedError", "ValueError"})
_NO_REFUSAL = re.compile(
    r"broadcast|core dimension|not aligned|cannot reshape|array dimensions|axes don't match|inhomogeneous|to unpack|"
    r"need at least one array|out of bounds for array|einsum"
)
"""What libraries say in a ValueError about shapes that do not fit: nobody meant to refuse anything."""
_SMALL: Sequence[Mapping[str, int]] = (
    {"d_model": 9, "num_heads": 3, "d_ff": 5, "vocab_size": 5, "src_vocab_size": 5, "tgt_vocab_size": 5,
     "block_size": 3, "max_len": 3, "num_layers": 1, "num_encoder_layers": 1, "num_decoder_layers": 1,
     "num_segments": 3, "image_size": 9, "patch_size": 3, "channels": 1, "num_classes": 3},
    {"d_model": 2, "num_heads": 2, "d_ff": 1, "vocab_size": 2, "src_vocab_size": 3, "tgt_vocab_size": 3,
     "block_size": 1, "max_len": 1, "num_layers": 1, "num_encoder_layers": 1, "num_decoder_layers": 1,
     "num_segments": 2, "image_size": 2, "patch_size": 1, "channels": 2, "num_classes": 2},
)  # fmt: skip
"""Odd sizes, and tiny ones: who takes these refuses none of the small sizes."""
_ROOMY: Mapping[str, int] = {
    "d_model": 64, "num_heads": 4, "d_ff": 256, "vocab_size": 64, "src_vocab_size": 64, "tgt_vocab_size": 64,
    "block_size": 64, "max_len": 64, "num_layers": 2, "num_encoder_layers": 2, "num_decoder_layers": 2,
    "num_segments": 2, "image_size": 32, "patch_size": 8, "channels": 3, "num_classes": 16,
}  # fmt: skip
"""Sizes that hardly any rule forbids: multiples of many numbers, d_ff four times d_model."""
_HEADS = (1, 2, 3, 4, 5, 6, 8)
_WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 40, 48)
_NUMBERS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20, 24, 32, 40, 48, 56)
_INNER = (1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 48, 63, 64, 65, 66, 68, 72, 96, 128, 160, 192, 256, 320)
_LAYERS = (1, 2, 3)
_AXES: Mapping[str, Sequence[int]] = {
    "vocab_size": _NUMBERS, "src_vocab_size": _NUMBERS, "tgt_vocab_size": _NUMBERS, "block_size": _NUMBERS,
    "max_len": _NUMBERS, "num_layers": _LAYERS, "num_encoder_layers": _LAYERS, "num_decoder_layers": _LAYERS,
}  # fmt: skip
_SPLITS = ((2, 3), (2, 5), (3, 2), (3, 4), (4, 1), (4, 2), (4, 3), (2, 6), (4, 6), (2, 12))
"""Numbers of heads and widths of a head that tell a rule about d_model from one about the width of a head."""
_STEPS = (1, 2, 4, 8, 16)
_FEWEST = 2
"""A rule is believed only if at least this many different sizes were accepted."""
_QUADRUPLE = "4 * d_model"


def is_refusal(failure: DriverError) -> bool:
    """Whether the code refuses in words that are not those of a library about shapes.

    It raises what Python has for that, a class derived from it, or a class of its own derived from Exception alone.
    """
    if not isinstance(failure, ImplementationFailure) or failure.kind != "exception":
        return False
    own = failure.base == "Exception" != failure.type
    return (own or failure.base in _REFUSALS) and not _NO_REFUSAL.search(failure.message)


def limited(subject: Subject, found: Mapping[str, Range]) -> Subject:
    """Return the same component with limits that were found; what is declared takes precedence."""
    if not found:
        return subject
    limits = SizeLimits(found).merged(subject.bound.limits)
    return subject.with_bound(replace(subject.bound, limits=limits, found=found))


@np.errstate(all="ignore")  # an implementation may return anything
def found_limits(
    subject: Subject, dtypes: Iterable[str], inherited: Iterable[Mapping[str, Range]] = ()
) -> dict[str, Range]:
    """Return the rule by which a component refuses sizes, for each size that has one; empty if it refuses none.

    `inherited` are the rules of its parts, which are tried first. Sizes with declared limits have none here.
    """
    names = {a.name for a in subject.bound.component.arguments} & subject.bound.construct.names()
    if not names & (_ROOMY.keys() - {"num_layers"}):
        return {}
    parts = _joined(inherited, names)
    try:
        for dtype in dtypes:
            trials = _Constructions(subject, dtype)
            outcomes = [trials.takes(**sizes) for sizes in _SMALL]
            if all(outcomes):
                return {}
            if False not in outcomes:
                continue  # perhaps a number format that it lacks
            if parts and all(_Constructions(limited(subject, parts), dtype).takes(**sizes) for sizes in _SMALL):
                return parts
            if trials.takes(**_ROOMY):
                return _rules(trials, names)
    except WorkerLost:
        pass  # for clauses to find
    return {}


def _joined(inherited: Iterable[Mapping[str, Range]], names: set[str]) -> dict[str, Range]:
    """Return the strictest of the parts' rules for each size that this component has."""
    widths = {"head_width"} if {"num_heads", "d_model"} <= names else set[str]()
    limits = SizeLimits()
    for part in inherited:
        for name in part.keys() & (names | widths):
            one, other = limits.of(name), part[name]
            step = max(one.multiple_of or 0, other.multiple_of or 0) or None
            smallest = max(one.min or 0, other.min or 0) or None
            limits = limits.merged(SizeLimits({name: replace(other, min=smallest, multiple_of=step)}))
    return dict(limits.sizes)


class _NotAskedError(Exception):
    """What is declared does not allow these sizes."""


class _Constructions:
    """What happens at some sizes. Raises WorkerLost."""

    def __init__(self, subject: Subject, dtype: str) -> None:
        self.subject, self._dtype = subject, dtype

    def takes(self, **wanted: int) -> bool | None:
        """Whether it builds and runs at the allowed sizes nearest to these; None if it fails without refusing."""
        try:
            sizes = self.subject.sizes(**wanted)
        except NoSizeError:
            return None
        return self._outcome(sizes)

    def takes_exactly(self, **wanted: int) -> bool | None:
        """Whether it takes these sizes; None if it fails without refusing. Raises _NotAskedError."""
        try:
            sizes = self.subject.sizes(**{**_ROOMY, **wanted})
        except NoSizeError:
            raise _NotAskedError from None
        if any(sizes[name] != size for name, size in wanted.items() if name in sizes):
            raise _NotAskedError
        return self._outcome(sizes)

    def _outcome(self, sizes: Mapping[str, Any]) -> bool | None:
        try:
            instance = self.subject.construct(sizes, dtype=self._dtype)
            if not self.subject.bound.component.several:  # how masks are passed is not known yet
                instance(*instance.example_inputs(Draw(0, "refusals"), further=0))
        except ImplementationFailure as failure:
            return False if is_refusal(failure) else None
        except (ClauseFailure, NoSizeError):
            return None
        return True


def _tried(values: Iterable[T], takes: Callable[[T], bool | None]) -> dict[T, bool | None]:
    """Return what happens at each of these values, without those that are not allowed."""
    found: dict[T, bool | None] = {}
    for value in values:
        with suppress(_NotAskedError):
            found[value] = takes(value)
    return found


def _rules(trials: _Constructions, names: set[str]) -> dict[str, Range]:
    """Return the rule of each size, those of the widths first."""
    found: dict[str, Range] = {}
    free = names - trials.subject.bound.limits.sizes.keys()
    if "d_model" in free:
        found |= _of_heads(trials, names) if "num_heads" in names else _of_width(trials)
    if "d_ff" in free:
        found |= _of_inner(trials, found)
    for name in sorted(free & _AXES.keys()):
        rule = _fitted(_tried(_AXES[name], lambda value: trials.takes_exactly(**{name: value})))  # noqa: B023
        found |= {name: rule} if rule else {}
    return found


def _of_width(trials: _Constructions) -> dict[str, Range]:
    widths = (*_WIDTHS, _ROOMY["d_model"])
    rule = _fitted(_tried(widths, lambda width: trials.takes_exactly(d_model=width, d_ff=4 * width)))
    return {"d_model": rule} if rule else {}


def _of_heads(trials: _Constructions, names: set[str]) -> dict[str, Range]:
    """Return rules about the number of heads, and about d_model or the width of a head, whichever it is."""
    limits, found = trials.subject.bound.limits, dict[str, Range]()

    def takes(pair: tuple[int, int]) -> bool | None:
        heads, width = pair
        return trials.takes_exactly(num_heads=heads, d_model=heads * width, d_ff=4 * heads * width)

    if "num_heads" in names and limits.of("num_heads") == Range():
        rule = _fitted(_tried(_HEADS, lambda heads: takes((heads, 16))))
        found |= {"num_heads": rule} if rule else {}
    few = found.get("num_heads", limits.of("num_heads")).min or 1
    by_width = _tried(_WIDTHS, lambda width: takes((few, width)))
    rule = _fitted({few * width: taken for width, taken in by_width.items()})
    split = _tried(_SPLITS, takes)
    if rule and all(rule.allows(heads * width) == taken for (heads, width), taken in split.items()):
        return {**found, "d_model": rule}
    rule = _fitted(by_width)
    if rule and "head_width" not in limits.sizes and all(rule.allows(w) == taken for (_, w), taken in split.items()):
        return {**found, "head_width": rule}
    return found


def _of_inner(trials: _Constructions, found: Mapping[str, Range]) -> dict[str, Range]:
    """Return the rule of d_ff: a range, at least d_model, or four times d_model."""
    width = _ROOMY["d_model"]
    taken = _tried(_INNER, lambda value: trials.takes_exactly(d_ff=value))
    if [value for value, yes in taken.items() if yes] == [4 * width] and None not in taken.values():
        return {"d_ff": Range(equals=_QUADRUPLE)}
    rule = _fitted(taken)
    if rule is None or rule.min != width or not trials.takes_exactly(d_model=width // 2, d_ff=width // 2):
        return {"d_ff": rule} if rule else {}
    step = found.get("d_model", Range()).multiple_of
    return {"d_ff": Range(least="d_model", multiple_of=None if rule.multiple_of == step else rule.multiple_of)}


def _fitted(taken: Mapping[int, bool | None]) -> Range | None:
    """Return the rule `at least`, `multiple of` with which all of these trials agree; None if all or none do."""
    accepted = [value for value, yes in taken.items() if yes]
    if None in taken.values() or len(accepted) < _FEWEST or all(taken.values()):
        return None
    for step in _STEPS:
        first = min(accepted)
        rule = Range(min=first if first > step else None, multiple_of=step if step > 1 else None)
        if all(rule.allows(value) == yes for value, yes in taken.items()):
            return rule
    return None
