"""What a program of its own repeats: cases, made of stories, and how far results may be apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.witness import SeenObject, SeenRequest
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array

__all__ = ["Repeated", "repeated", "stands"]

_ALLOWED, _ALLOWED_IN_HALF = 1e-4, 0.2
"""How far results may be apart, relative to the largest: they differ by roundings only."""
_PASSED_ON = ("op", "args", "kwargs", "output", "method", "function", "mode", "seed", "record", "wrt", "way", "later")


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a program is told to do for one object, the arrays that it gets, and what must come of it."""

    component: str
    work: Mapping[str, Any]
    arrays: Mapping[str, Array]
    steps: Sequence[SeenRequest]
    allowed: float
    story: SeenObject | None
    """What clauses asked; None where the calls are our own."""

    def size(self) -> int:
        """The number of bytes that a program gets for it."""
        return sum(array.nbytes for array in self.arrays.values())

    def problem(self, number: int, reply: Reply) -> str:
        """Return what the program got otherwise in this case, the first thing; nothing if all is the same."""
        for place, step in self._in_time():
            names = _names(step)
            got = {name: reply.tensors.get(f"{number}.{place}.{n}") for n, name in enumerate(names)}
            if any(array is None for array in got.values()):
                return str(reply.header["errors"].get(str(number)) or reply.header["ended"] or "there is no result")
            if told := _away(step.got, got, names, self.allowed):
                later = ", a day later" if place >= len(self.steps) else ""
                return f"{told} in call {self._calls_until(place)}{later}"
        return ""

    def _in_time(self) -> Iterator[tuple[int, SeenRequest]]:
        """Yield the steps that have a result, and once more the last one if it is repeated later."""
        yield from ((place, step) for place, step in enumerate(self.steps) if step.compared)
        if self.steps[-1].header.get("later"):
            yield len(self.steps), self.steps[-1]

    def _calls_until(self, place: int) -> int:
        return sum(step.compared for step in self.steps[: place + 1])


def repeated(subject: Subject, story: SeenObject, *, ours: bool = False) -> Repeated:
    """Return a case for a program: how to build an object, and the steps with what they give."""
    build, steps = story.build, story.steps[: story.length]
    last = steps[-1]
    steps[-1] = SeenRequest({**last.header, "later": last.header.get("mode") != "train"}, last.given, last.got)
    arrays = {f"build/{name}": array for name, array in story.given.items()}
    arrays |= {f"{n}/{name}": array for n, step in enumerate(steps) for name, array in step.given.items()}
    work = {"path": build["path"], "factory": bool(build.get("factory")), "dtype": build["dtype"]}
    work |= {"seed": None if ours else build.get("seed"), "build": {key: build.get(key) for key in ("args", "kwargs")}}
    work["steps"] = [_told(step) for step in steps]
    allowed = _ALLOWED_IN_HALF if subject.precision in HALF else _ALLOWED
    return Repeated(subject.name, work, arrays, steps, allowed, None if ours else story)


def _told(step: SeenRequest) -> dict[str, Any]:
    passed_on = {key: step.header[key] for key in _PASSED_ON if step.header.get(key) is not None}
    return {**passed_on, "names": list(step.given), "results": _names(step)}


def _names(step: SeenRequest) -> list[str]:
    """Return the names of a step's results: the output, then derivatives."""
    wanted = sorted(name for name in step.got if name != "out") if step.header["op"] == "vjp" else []
    return ["out", *wanted] if step.compared else []


def stands(implementation: Implementation, case: Repeated) -> bool:
    """Whether a new object of the worker gives what the first one gave, so that the difference is the program's.

    What differs because an object is built differently each time, or learns, says nothing. In evaluation mode an
    object that is built and written alike owes the same results.
    """
    if (story := case.story) is None:
        return True
    try:
        again = [_asked_again(implementation, case, story, seed) for seed in (1, 2)]
    except NOT_ITS_FAULT:
        raise
    except Exception:  # noqa: BLE001 - it answered once
        return True
    steps = list(zip(case.steps, *(results for results, _ in again), strict=True))
    same = all(not step.compared or not _away(step.got, a, _names(step), case.allowed) for step, a, _ in steps)
    written = {name for step in case.steps if not step.compared for name in step.given}
    first, second = ({n: array for n, array in held.items() if n not in written} for _, held in again)
    alike = first.keys() == second.keys() and all(
        np.array_equal(array, second[n], equal_nan=array.dtype.kind == "f") for n, array in first.items()
    )
    evaluated = all(step.header.get("mode") != "train" and step.header.get("seed") is None for step in case.steps)
    return same or (alike and evaluated)


def _asked_again(
    implementation: Implementation, case: Repeated, story: SeenObject, seed: int
) -> tuple[list[Mapping[str, Array]], Mapping[str, Array]]:
    """Return what a new object of the worker gives in the same steps, and the arrays that it held before.

    What nobody seeded gets another seed each time: it may depend on chance, which a program's own would not repeat.
    """
    handle = implementation.request(story.build, story.given).header["handle"]
    held = implementation.request({"op": "read", "handle": handle}).tensors
    asked = [{"seed": seed, **_stated(step.header), "handle": handle} for step in case.steps]
    replies = [implementation.request(header, step.given) for header, step in zip(asked, case.steps, strict=True)]
    return [reply.tensors for reply in replies], held


def _stated(header: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if value is not None}


def _away(wanted: Mapping[str, Array], got: Mapping[str, Array | None], names: Sequence[str], allowed: float) -> str:
    """Return how results of one step differ from those wanted, beyond rounding; nothing if they do not.

    Numbers are compared with the largest of the step: sums in another order leave other remains of what cancels.
    """
    numbers = [wanted[name].astype(np.float64) for name in names]
    most = allowed * max(1e-30, *(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in numbers))
    for name, want in zip(names, numbers, strict=True):
        found = got.get(name)
        what = "the output" if name == "out" else "a gradient"
        if found is None or found.shape != want.shape:
            return f"{what} has shape {'' if found is None else found.shape}, expected {want.shape}"
        found = found.astype(np.float64)
        apart = np.where((found == want) | (np.isnan(found) & np.isnan(want)), 0.0, np.abs(found - want))
        if not np.all(apart <= most):
            return f"{what} is off by {np.nanmax(apart):.3g}"
    return ""
