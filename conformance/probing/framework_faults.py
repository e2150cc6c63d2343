"""Known faults of frameworks: code that is right, and wrong only in a number format that its author does not use.

A component is excused by a row of the table where it shows what the row says: it gives the definition's numbers in the
format of the row, and others in float64 from that number of positions on. It is then judged in that format, and a note
says so. Public reports, and what was measured, stand in docs/found.md.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.subject.component import Subject
from conformkit.spec.tolerances import Precision, tolerance

__all__ = ["FAULTS", "FrameworkFault", "fault_of", "with_fault"]


@dataclass(frozen=True, slots=True)
class FrameworkFault:
    """A call of a framework that gives wrong numbers without raising, and the format to judge in instead."""

    call: str
    seen: str
    """The version in which it was seen, and where."""
    tokens: int
    """The number of positions from which on it shows."""
    judged: Precision
    instead: str
    """What is right in every format."""


FAULTS = (
    FrameworkFault(
        call="F.scaled_dot_product_attention with float64 values and a float32 `attn_mask`",
        seen="torch 2.13 on a CPU", tokens=16, judged="float32", instead="attn_mask.to(q.dtype)",
    ),
)  # fmt: skip
"""All that are known."""
_OFF = 1e-3
"""Relative error in float64 that no rounding explains, in a component which fits at fewer positions."""


@np.errstate(all="ignore")  # an implementation may return anything
def fault_of(subject: Subject, formats: tuple[str, ...]) -> FrameworkFault | None:
    """Return the fault that a component shows which fits the definition in float64 at a few positions, if it does."""
    bound = subject.bound
    if not subject.link.is_torch or not bound.fits or bound.dtype != "float64":
        return None
    for fault in FAULTS:
        if fault.judged not in formats or _error(subject, "float64", fault.tokens) < _OFF:
            continue
        if _error(subject, fault.judged, fault.tokens) < tolerance(fault.judged, bound.component.depth):
            return fault
    return None


def with_fault(bound: Bound, fault: FrameworkFault) -> Bound:
    """Return a binding in the format of the fault with a note that tells why."""
    name = bound.component.name
    note = (
        f"{name} gives the definition's numbers in {fault.judged}, and from {fault.tokens} positions on others in "
        f"float64, as {fault.call} does ({fault.seen}): a fault of the framework; it is judged in {fault.judged}. "
        f"`{fault.instead}` is right in both"
    )
    return replace(bound, notes=(*bound.notes, note))


def _error(subject: Subject, dtype: str, tokens: int) -> float:
    """Return the relative error at so many positions; 0 if nothing comes of it: what is lost there, clauses find."""
    room = {name: tokens + 1 for name in ("block_size", "max_len") if name in subject.sizes()}
    with suppress(ImplementationFailure, WorkerLost, ClauseFailure, NotApplicable, PatternError, NoSizeError):
        instance = subject.build(dtype=dtype, **room).scatter(Draw(0, "a fault of the framework"))
        instance.read()
        inputs = instance.example_inputs(Draw(0, "inputs for a fault"), tokens=tokens, further=0)
        got, want = instance(*inputs), instance.expected(*inputs)
        if got.shape == want.shape:
            error = np.abs(got.astype(np.float64) - want).max(initial=0.0)
            return float(error / max(np.abs(want).max(initial=0.0), 1e-30))
    return 0.0 if dtype == "float64" else float("inf")
