"""What counts is computed once more, by a program of its own: code may be right only where it finds a judge.

Nothing of the kit is in that process: no frame of the worker on the stack, no module, no argument or variable that
names it, no generator that was seeded. Arrays are the framework's own, derivatives are recorded as in any program, and
clocks move on. The same objects are built with the same weights, and their results compared with the worker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.pace import slowness
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import ImplementationFailure, StartError, WorkerLost
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["Plainly", "plainly"]

_SECONDS = 60.0
"""Besides the time in which it may be imported."""
_SIZES: Sequence[Mapping[str, Any]] = (
    {"d_model": 12, "num_heads": 3, "d_ff": 20, "vocab_size": 11, "num_layers": 2, "block_size": 16, "max_len": 16},
    {"d_model": 128, "num_heads": 4, "d_ff": 256, "vocab_size": 300, "num_layers": 2, "block_size": 64, "max_len": 64},
)
"""Small ones, and such as real models have."""
_TOKENS = (7, 40)
_MOST_BYTES = 128 << 20
_KNOWN = frozenset({"$tensor", "$self", "$name", "$dtype", "$object"})
"""What a plain program can pass."""
_ALLOWED, _ALLOWED_IN_HALF = 1e-4, 0.2
"""How far results may be apart, relative to the largest: they differ by roundings only."""


@dataclass(frozen=True, slots=True)
class Plainly:
    """What a program of its own got otherwise, by component, and a note about what it could not do."""

    problems: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def changed(self, results: Sequence[Result]) -> Iterator[Result]:
        """Yield the results that are earned nowhere but in the worker, without their passes."""
        for component, told in self.problems.items():
            yield from _changed(results, component, told)


@dataclass(slots=True)
class _Repeated:
    component: str
    work: dict[str, Any]
    arrays: dict[str, Array]
    wanted: list[Array]
    allowed: float

    def size(self) -> int:
        """The number of bytes that a program gets for it."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(slots=True)
class _Recorder:
    """Passes requests on, and keeps them."""

    implementation: Implementation
    is_torch: bool
    asked: list[tuple[Mapping[str, Any], Mapping[str, Array], Reply]] = field(default_factory=list)

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Reply:
        reply = self.implementation.request(header, tensors)
        self.asked.append((header, tensors, reply))
        return reply


def plainly(implementation: Implementation, seed: int) -> Plainly:
    """Repeat calls of each component in a program of its own."""
    session = implementation.session
    if not isinstance(session, Session) or session.device != "cpu":
        return Plainly()
    cases: list[_Repeated] = []
    left_out: list[str] = []
    room = _MOST_BYTES
    for subject in implementation.subjects():
        made = [case for case in _cases(implementation, subject, seed) if (room := room - case.size()) > 0]
        cases += made
        left_out += [] if made else [subject.name]
    note = f"not repeated in a program of its own: {', '.join(left_out)}" if left_out else ""
    return Plainly(_problems(implementation, session, cases) if cases else {}, note)


def _cases(implementation: Implementation, subject: Subject, seed: int) -> Iterator[_Repeated]:
    """Yield what a plain program can repeat of a component, with the worker's results."""
    if subject.bound.failure is not None or subject.bound.grows:
        return
    for number, sizes in enumerate(_SIZES):
        recorder = _Recorder(implementation, implementation.is_torch)
        draw = Draw(seed, f"plainly {subject.name} {number}", implementation.forms())
        try:
            instance = subject.like(recorder).build(**sizes).scatter(draw)
            inputs = instance.example_inputs(draw, tokens=_TOKENS[number])
            weights = instance.read_raw()
            if recorder.asked[0][2].header["lazy"]:
                return
            yield from _calls_of(instance, recorder, inputs, weights)
        except NOT_ITS_FAULT:
            raise
        except Exception:  # noqa: BLE001, S112 - sizes that it refuses, say
            continue


def _calls_of(
    instance: Instance, recorder: _Recorder, inputs: Sequence[Array], weights: Mapping[str, Array]
) -> Iterator[_Repeated]:
    """Yield calls with these inputs and such as begin like them; of a model, a generated text that no seed changes."""
    recorder.asked[1:] = []
    for given in (inputs, _changed_last(inputs), inputs):
        instance(*given)
    if (made := _case(instance, recorder, weights)) is not None:
        yield made
    if instance.subject.bound.generation is None or inputs[0].dtype.kind != "i":
        return
    recorder.asked[1:] = []
    for seed in (1, 2):
        instance.generate(inputs[0][:, :3], 4, greedy=True, seed=seed)
    first, second = (reply.tensors["out"] for _, _, reply in recorder.asked[1:])
    if np.array_equal(first, second) and (made := _case(instance, recorder, weights)) is not None:
        yield made


def _changed_last(inputs: Sequence[Array]) -> list[Array]:
    """Return inputs that begin like these: only the last vector or id of the first input differs."""
    first = inputs[0].copy()
    if first.dtype.kind == "f":
        first[..., -1, :] = -first[..., -1, :]
    elif first.ndim:
        first[..., -1] = first[..., 0]
    return [first, *inputs[1:]]


def _case(instance: Instance, recorder: _Recorder, weights: Mapping[str, Array]) -> _Repeated | None:
    """Return a case from what the worker was asked; None where a plain program could not do the same."""
    (build, built_with, _), *calls = recorder.asked
    call = calls[0][0]
    names = list(weights)
    if (
        not calls
        or build.get("parameters")
        or build.get("globals")
        or call.get("each")
        or not _is_plain(build)
        or not _is_plain(call)
    ):
        return None
    if not all(part.isidentifier() or part.isdecimal() for name in names for part in name.split(".")):
        return None
    arrays = {f"build/{name}": array for name, array in built_with.items()}
    arrays |= {f"weight/{name}": array for name, array in weights.items()}
    arrays |= {f"{n}/{name}": array for n, (_, given, _) in enumerate(calls) for name, array in given.items()}
    work = {"path": build["path"], "factory": bool(build.get("factory")), "dtype": build["dtype"], "weights": names}
    work |= {"build": {key: build.get(key) for key in ("args", "kwargs")}, "calls": len(calls)}
    work["call"] = {key: call.get(key) for key in ("args", "kwargs", "output", "method", "function")}
    allowed = _ALLOWED_IN_HALF if instance.subject.precision in HALF else _ALLOWED
    return _Repeated(instance.subject.name, work, arrays, [reply.tensors["out"] for _, _, reply in calls], allowed)


def _is_plain(template: Any) -> bool:
    if isinstance(template, Mapping):
        if {key for key in template if key.startswith("$")} - _KNOWN or {"then", "by_class", "strided"} & {*template}:
            return False
        return all(map(_is_plain, template.values()))
    return all(map(_is_plain, template)) if isinstance(template, list | tuple) else True


def _problems(implementation: Implementation, session: Session, cases: Sequence[_Repeated]) -> dict[str, str]:
    """Return what a program of its own got otherwise, by component."""
    location = {key: session.location.header()[key] for key in ("kind", "name", "path", "sys_path")}
    work = {
        "location": location, "framework": implementation.framework, "module": implementation.module,
        "cases": [case.work for case in cases],
    }  # fmt: skip
    arrays = {f"{number}/{name}": array for number, case in enumerate(cases) for name, array in case.arrays.items()}
    seconds = (session.limits.load_seconds + _SECONDS) * slowness()
    if (left := implementation.deadline.left(session)) is not None:
        implementation.check_time()
        seconds = min(seconds, left)
    reply = _asked(session, {"op": "program", "work": work, "seconds": seconds}, arrays)
    implementation.check_time()  # what did not end in time is late, not wrong
    found: dict[str, str] = {}
    for number, case in enumerate(cases):
        if told := _problem(number, case, reply):
            found.setdefault(case.component, told)
    return found


def _asked(session: Session, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Reply:
    """Let a worker run the program, and tell how that ended."""
    seconds = header["seconds"] + 10.0
    try:
        try:
            return session.apart(header, arrays, seconds)
        except StartError:  # what makes workers was lost
            session.restart()
            return session.apart(header, arrays, seconds)
    except WorkerLost as lost:
        return Reply({"ended": lost.detail, "errors": {}})
    except ImplementationFailure as failure:
        return Reply({"ended": str(failure), "errors": {}})


def _problem(number: int, case: _Repeated, reply: Reply) -> str:
    for call, want in enumerate([*case.wanted, case.wanted[-1]]):
        got = reply.tensors.get(f"{number}.{call}")
        if got is None:
            return str(reply.header["errors"].get(str(number)) or reply.header["ended"] or "there is no result")
        if got.shape != want.shape:
            return f"the output has shape {got.shape}, expected {want.shape}"
        away = np.abs(got - want)
        if not np.all(away <= case.allowed * max(1e-30, float(np.abs(want).max(initial=0.0)))):
            later = ", a day later" if call == len(case.wanted) else ""
            return f"the output is off by {np.nanmax(away):.3g} in call {min(call + 1, len(case.wanted))}{later}"
    return ""


def _changed(results: Sequence[Result], component: str, told: str) -> Iterator[Result]:
    """Yield the results of a component that are earned nowhere else: one fails, the others do not count."""
    own = [r for r in results if r.clause.component == component and r.verdict is Verdict.PASS]
    first = next((r for r in own if r.clause.id.endswith("-ORACLE")), None)
    first = first or next((r for r in own if "oracle" in r.clause.evidence), next(iter(own), None))
    for result in own:
        if result is first:
            message = f"it holds only where it is judged: in a program of its own, {told}"
            yield replace(result, verdict=Verdict.FAIL, finding=stated(message), distance=None)
        else:
            reason = f"the results of {component} differ outside the judge"
            yield replace(result, verdict=Verdict.NOT_RUN, reason=reason, distance=None)
