"""Comparisons that clauses are made of. Each raises ClauseFailure with both values and their distance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from conformkit.conformance.assertions.experiments import experiment
from conformkit.conformance.assertions.extents import Extents, widen
from conformkit.conformance.assertions.observed import Observed
from conformkit.conformance.assertions.relations import relation
from conformkit.conformance.assertions.suppositions import Slips, supposed
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.findings import words
from conformkit.conformance.findings.finding import Finding, Kind, stated
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.findings.threshold import Threshold
from conformkit.conformance.text import listed
from conformkit.spec.arrays import Array

__all__ = [
    "ClauseFailure",
    "Compared",
    "Evidence",
    "Ground",
    "Kind",
    "NoValue",
    "NotApplicable",
    "NotYet",
    "OtherParameters",
    "WeightsUnknown",
    "Withheld",
    "answered",
    "begins_at",
    "called",
    "check",
    "check_close",
    "check_differs",
    "check_dtype",
    "check_equal",
    "check_finite",
    "check_hidden",
    "check_refuses",
    "check_repeated",
    "check_shape",
    "check_zero",
    "explains",
    "gathering",
    "part_of",
    "quoted",
    "refusing",
    "related",
    "remark",
    "supposing",
    "withheld",
]


@dataclass(frozen=True, slots=True)
class Compared:
    """The arrays that a check found too different, or with `alike` too similar; up to `allowed` they may differ.

    `hidden` marks entries that a mask hides, if the entries are pairs of query and key.
    """

    got: Array
    want: Array
    allowed: float = 0.0
    alike: bool = False
    hidden: Array | None = None


class ClauseFailure(AssertionError):
    """A clause does not hold: what was found, as data or as a sentence with notes; `compared` if two arrays were."""

    def __init__(self, found: Finding | str, *notes: str, compared: Compared | None = None) -> None:
        self.finding = stated(found, *notes) if isinstance(found, str) else found
        self.compared = compared
        super().__init__(self.finding)

    @property
    def message(self) -> str:
        """What was found as one sentence, for whoever prints it."""
        return words.message(self.finding)

    @property
    def details(self) -> tuple[str, ...]:
        """Further lines."""
        return words.details(self.finding)

    def __str__(self) -> str:
        """Return it in words, for a traceback."""
        return self.message


class WeightsUnknown(ClauseFailure):
    """It is not known which weight is which, so what needs them is not judged: no failure of the implementation."""


class OtherParameters(ClauseFailure):
    """A component has other parameters than its definition, so what needs them finds nothing of its own."""

    def __init__(self, component: str, *details: str) -> None:
        super().__init__(f"the parameters of {component} are not those of its definition", *details)
        self.component = component


class Ground(Enum):
    """What a clause that does not apply would need: a declaration may have taken it away."""

    NATURE = "nature"
    """The implementation is of another kind, whatever is declared."""
    SIZES = "sizes"
    FORMATS = "formats"


class NotApplicable(Exception):
    """The clause does not apply to this implementation, and why; `lacks` is the ability that it does not have."""

    def __init__(self, reason: str, lacks: str = "", *, ground: Ground = Ground.NATURE) -> None:
        super().__init__(reason)
        self.lacks, self.ground = lacks, ground

    @classmethod
    def from_sizes(cls, reason: str) -> NotApplicable:
        """Return that no allowed sizes show what the clause is about."""
        return cls(reason, ground=Ground.SIZES)

    @classmethod
    def from_formats(cls, reason: str) -> NotApplicable:
        """Return that no allowed number format shows what the clause is about."""
        return cls(reason, ground=Ground.FORMATS)


class NoValue(ClauseFailure):
    """An argument that conform.toml declares has no value at these sizes, so that the code never saw them."""


class NotYet(Exception):
    """The clause is not checked until another one passes: what it would find is that one's finding.

    Where that one finds nothing, a `failure` is this clause's own.
    """

    def __init__(self, clause_id: str, failure: Exception | None = None) -> None:
        super().__init__(clause_id)
        self.clause_id, self.failure = clause_id, failure


@dataclass(frozen=True, slots=True)
class Withheld:
    """A mask that a call was not given, though an argument of unknown meaning may be for it: what, why, what to do."""

    what: str
    problem: str
    advice: tuple[str, ...] = ()


@dataclass(slots=True)
class Evidence:
    """What the checks of one clause saw: the worst error in units of the allowed one, and how many checks ran."""

    distance: float | None = None
    checks: int = 0
    setting: Setting | None = None
    """Sizes and options under which the current check runs, for the reader of a failure."""
    form: str = ""
    """The number format in which the implementation computes, if it is not the one in which results arrive."""
    extents: Extents = field(default_factory=dict)
    """The sizes with which components were called."""
    threshold: Threshold | None = None
    """From which size on the clause does not hold, if it was looked at from small sizes to large ones."""
    remark: str = ""
    """What the reader of a report is told, whatever the verdict."""
    finest: float = 0.0
    """The relative error that this format explains; results are never compared more strictly."""
    inputs: Mapping[str, Array] = field(default_factory=dict)
    """What the last call was given."""
    latest: Mapping[str, int] = field(default_factory=dict)
    """The sizes of the last call."""
    calls: deque[Observed] = field(default_factory=lambda: deque(maxlen=_CALLS))
    """The last calls, for experiments with the one that was wrong."""
    slips: deque[Slips] = field(default_factory=lambda: deque(maxlen=_SUPPOSED))
    """What usually goes wrong in what is compared next, and what comes of it."""
    withheld: Withheld | None = None
    """A mask that a call lacked, though the code may take it."""
    explained: list[tuple[Array, Callable[[], Array]]] = field(default_factory=list)
    """Wanted results, and what works out how far from each of their numbers roundings may take one."""

    def compared(self, distance: float) -> None:
        """Keep the worst error."""
        self.distance = max(distance, self.distance or 0.0)

    def sizes(self) -> dict[str, int]:
        """Return the sizes that were the same in all calls, and those others that the last call had."""
        named = (size for sizes in self.extents.values() for size in sizes.items())
        found = {**self.latest, **{name: least for name, (least, most) in named if least == most}}
        if {"d_model", "num_heads"} <= found.keys():
            found["d_head"] = found["d_model"] // found["num_heads"]
        return found

    def placed(self, found: Finding) -> Finding:
        """Return a finding with the setting and the sizes at which it was found."""
        setting = found.setting if found.setting is not None else self.setting
        return replace(found, setting=setting, threshold=self.threshold)


_CALLS = 16
"""So many calls are remembered."""
_REPEATED = 16
"""How many roundings of its largest number an equal call's result may be off."""
_SUPPOSED = 8
"""So many places that may go wrong are remembered."""
_EXPLANATIONS = 4
"""So many wanted results are remembered with what explains errors: a comparison follows soon."""
_current: ContextVar[Evidence] = ContextVar("evidence")


@contextmanager
def gathering(form: str = "", finest: float = 0.0) -> Iterator[Evidence]:
    """Collect the evidence of one clause; for this format, tolerances are never below its rounding."""
    evidence = Evidence(form=form, finest=finest)
    token = _current.set(evidence)
    try:
        yield evidence
    finally:
        _current.reset(token)


def _evidence() -> Evidence:
    evidence = _current.get(None) or Evidence()
    evidence.checks += 1
    return evidence


def under(setting: str | Setting) -> None:
    """Say under which sizes and options the next checks run."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.setting = Setting.of(setting) if isinstance(setting, str) else setting


def begins_at(threshold: Threshold) -> None:
    """Note from which size on the clause does not hold, however it fails there."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.threshold = threshold


def related(failure: ClauseFailure) -> Finding:
    """Return what a check found, with how its arrays are related where it compared some that had to be alike."""
    found, compared, evidence = failure.finding, failure.compared, _current.get(None)
    if compared is None or compared.alike or found.kind not in {Kind.NUMBERS, Kind.UNTRUE}:
        return found
    if evidence is not None:
        slip = supposed(compared.got, compared.want, compared.allowed, reversed(evidence.slips))
        if slip is not None:
            return replace(found, relation=slip)
    inputs, sizes = (evidence.inputs, evidence.sizes()) if evidence is not None else ({}, {})
    known = relation(found.label, compared.got, compared.want, compared.allowed, inputs=inputs, sizes=sizes)
    if (known is None or not known.telling) and evidence is not None:
        known = experiment(compared.got, compared.want, compared.allowed, evidence.calls) or known
    return replace(found, relation=known)


def supposing(*slips: Slips) -> None:
    """Say what usually goes wrong in what is compared next: words, and what works out the result with that slip."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.slips.extend(slips)


def remark(sentence: str) -> None:
    """Tell the reader of the report what was measured and is not judged."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.remark = sentence


def explains(want: Array, allowed: Callable[[], Array]) -> None:
    """Give what works out how far roundings may take each number of a wanted result; it is asked where one is off."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.explained.append((want, allowed))
        del evidence.explained[:-_EXPLANATIONS]


def part_of(want: Array, index: Any) -> Array:
    """Return a part of a wanted result, which roundings explain as they do the whole."""
    part: Array = want[index]
    evidence = _current.get(None)
    if evidence is not None and (allowed := _explanation(evidence, want)) is not None:
        explains(part, lambda: allowed()[index])
    return part


def called(component: str, sizes: Mapping[str, int], inputs: Mapping[str, Array] | None = None) -> None:
    """Note the sizes with which a component was called, and the arrays."""
    evidence = _current.get(None)
    if evidence is not None:
        widen(evidence.extents, component, sizes)
        evidence.inputs, evidence.latest = inputs or {}, sizes


def withheld(mask: Withheld) -> None:
    """Note that a call lacked a mask which the code may take: what is wrong then may be the call."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.withheld = mask


def answered(call: Observed) -> None:
    """Note a call, for experiments if what came back is wrong."""
    evidence = _current.get(None)
    if evidence is not None:
        evidence.calls.append(call)


def _fail(found: Finding, compared: Compared | None = None) -> ClauseFailure:
    evidence = _current.get(None)
    setting = evidence.setting if evidence is not None else None
    return ClauseFailure(replace(found, setting=setting), compared=compared)


def check(
    label: str, holds: bool, *notes: str, compared: Compared | None = None, kind: Kind = Kind.UNTRUE,
    sampled: bool = False, own_draws: bool = False,
) -> None:  # fmt: skip
    """Check a plain condition; the label says what is wrong if it does not hold.

    `sampled` says that its numbers are shares or means of random draws, `own_draws` that they come from the code's own
    initialization: neither are the same in other right code.
    """
    _evidence()
    if not holds:
        found = Finding(kind, label, notes=notes, sampled=sampled, own_draws=own_draws)
        raise _fail(found, compared)


def quoted(names: Iterable[str]) -> str:
    """Return an implementation's names of its parameters, marked so that they cannot pass for the kit's words."""
    return listed([f"`{name}`" for name in names])


def check_shape(label: str, got: Array, want: tuple[int, ...], *notes: str) -> None:
    """Check the extents; the notes are for the reader if they differ."""
    _evidence()
    if got.shape != tuple(want):
        raise _fail(Finding(Kind.SHAPE, label, got.shape, tuple(want), notes=notes))


def check_dtype(label: str, got: str, want: str) -> None:
    """Check the number format, by name."""
    _evidence()
    if got != want:
        raise _fail(Finding(Kind.FORMAT, label, got, want))


def check_finite(label: str, got: Array) -> None:
    """Check that nothing is NaN or infinite."""
    _evidence()
    bad = ~np.isfinite(got)
    if bad.any():
        at = _first(bad)
        found = Finding(Kind.NOT_FINITE, label, _plain(got[at]), at=at, bad=int(bad.sum()), of=got.size)
        raise _fail(replace(found, rows=_whole_rows(bad)))


def _whole_rows(bad: Array) -> tuple[int, ...]:
    """Return which rows (…, rows, features) are not finite as a whole, if others are finite."""
    if bad.ndim < 2 or not (bad.all(axis=-1) == bad.any(axis=-1)).all():
        return ()
    rows = bad.any(axis=-1).reshape(-1, bad.shape[-2]).any(axis=0)
    return () if rows.all() else tuple(map(int, np.flatnonzero(rows)))


def check_equal(label: str, got: Array, want: Array) -> None:
    """Check exact equality; NaN equals nothing."""
    check_shape(label, got, np.shape(want))
    differs = got != want
    if np.any(differs):
        raise _mismatch(label, got, np.asarray(want), np.asarray(differs))


def check_repeated(label: str, got: Array, want: Array) -> None:
    """Check that an equal call gave an equal result, but for the order of sums, which depends on where arrays lie."""
    check_shape(label, got, np.shape(want))
    if got.dtype.kind == "f" and np.isfinite(want).all():
        rounded = _REPEATED * np.finfo(got.dtype).eps * np.abs(want).max(initial=0.0)
        if (np.abs(got - want) <= rounded).all():
            return
    check_equal(label, got, want)


def check_close(
    label: str, got: Array, want: Array, tolerance: float, *, scale: float | None = None, hidden: Array | None = None
) -> None:
    """Check that every entry is within `tolerance` of the wanted one, relative to the largest wanted number.

    `scale` replaces that largest number if the result is a small difference of large ones; `hidden` marks what a
    mask hides, for the reader of a failure. In half precision the tolerance is never below what the format explains,
    and a number may be as far off as drawn roundings take the definition's own result.
    """
    check_shape(label, got, np.shape(want))
    check_finite(label, got)
    want = np.asarray(want, np.float64)
    evidence = _evidence()
    tolerance = max(tolerance, evidence.finest)
    allowed = tolerance * (scale if scale is not None else max(float(np.abs(want).max(initial=0.0)), 1e-30))
    error = np.abs(got.astype(np.float64) - want)
    if (error > allowed).any() and (explanation := _explanation(evidence, want)) is not None:
        error = np.where(error <= explanation(), np.minimum(error, allowed), error)
    evidence.compared(float(error.max(initial=0.0)) / max(allowed, 1e-300))
    if (error > allowed).any():
        raise _mismatch(label, got, want, error > allowed, tolerance, allowed, hidden)


def _explanation(evidence: Evidence, want: Array) -> Callable[[], Array] | None:
    return next((allowed for known, allowed in reversed(evidence.explained) if known is want), None)


def check_zero(label: str, got: Array, *, at_most: float = 0.0, own_draws: bool = False) -> None:
    """Check that everything vanishes: exactly, unless the clause allows a remainder; for `own_draws` see `check`."""
    _vanishes(label, got, at_most, Compared(got, np.zeros_like(got), at_most), own_draws=own_draws)


def check_hidden(label: str, got: Array, allowed: Array, *, at_most: float = 0.0) -> None:
    """Check that pairs of query and key outside the allowed ones are 0; the allowed ones may have any value."""
    allowed = np.broadcast_to(allowed, got.shape)
    compared = Compared(got, np.where(allowed, got, 0.0), at_most, hidden=~allowed)
    _vanishes(label, np.where(allowed, 0.0, got), at_most, compared)


def _vanishes(label: str, got: Array, at_most: float, compared: Compared, *, own_draws: bool = False) -> None:
    check_finite(label, got)
    bad = np.abs(got) > at_most
    if bad.any():
        at = _worst(np.abs(got) * bad)
        worst = _plain(got[at])
        found = Finding(
            Kind.NOT_ZERO, label, worst, 0.0, at, int(bad.sum()), got.size, float(np.abs(got[at])), at_most,
            own_draws=own_draws,
        )  # fmt: skip
        raise _fail(found, compared)


def check_differs(label: str, one: Array, other: Array, *, at_least: float = 1e-6) -> None:
    """Check that two results are not the same, by more than rounding."""
    check_shape(label, one, other.shape)
    check_finite(label, one)
    if not (np.abs(one.astype(np.float64) - other.astype(np.float64)) > at_least).any():
        same = Compared(one, other, at_least, alike=True)
        raise _fail(Finding(Kind.UNCHANGED, label, allowed=at_least), same)


def check_refuses(label: str, action: Callable[[], Any]) -> str:
    """Check that the implementation raises an exception of any type; return the message. A crash is not a refusal.

    A size for which conform.toml has no value is as good as refused.
    """
    _evidence()
    try:
        action()
    except ImplementationFailure as refusal:
        if refusal.kind != "exception":
            raise
        return refusal.message
    except NoValue as none:
        return str(none)
    raise _fail(Finding(Kind.ACCEPTED, label))


@contextmanager
def refusing(counts: Callable[[ImplementationFailure], bool] | None = None) -> Iterator[None]:
    """Let the implementation refuse the calls in this block: only an exception ends it early, one that `counts`.

    A size for which conform.toml has no value is as good as refused.
    """
    try:
        yield
    except ImplementationFailure as failure:
        if failure.kind != "exception" or (counts is not None and not counts(failure)):
            raise
        _evidence()
    except NoValue:
        _evidence()


def each_of(names: str, settings: Iterable[Any]) -> Iterator[Any]:
    """Yield the settings, noting each for the reader of a failure under its names: `queries, keys`."""
    for setting in settings:
        under(Setting(names, setting))
        yield setting


def _mismatch(
    label: str, got: Array, want: Array, bad: Array, tolerance: float | None = None, allowed: float = 0.0,
    hidden: Array | None = None,
) -> ClauseFailure:  # fmt: skip
    error = np.where(bad, np.abs(got.astype(np.float64) - want.astype(np.float64)), 0.0)
    error = np.where(np.isnan(error), np.inf, error)
    at = _worst(error)
    evidence = _current.get(None)
    form = (evidence.form if evidence is not None and got.dtype.kind == "f" else "") or str(got.dtype)
    found = Finding(
        Kind.NUMBERS, label, _plain(got[at]), _plain(want[at]), at, int(bad.sum()), got.size, float(error[at]),
        allowed or None, tolerance, form,
    )  # fmt: skip
    return _fail(found, Compared(got, want, allowed, hidden=hidden))


def _plain(value: Any) -> Any:
    """Return one entry as a number of Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _first(bad: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def _worst(error: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
