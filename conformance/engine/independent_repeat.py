"""What counts is computed once more, by a program of its own: code may be right only where it finds a judge.

Nothing of the kit is in that process: no frame of the worker on the stack, no module, no argument or variable that
names it, and as many threads as a user has. Arrays are the framework's own, and clocks move on. The same objects are
built with the same weights, and their results compared with the worker's: of calls at usual sizes, with and without
derivatives, and of a sample of what clauses really asked (witness.py), with its sizes, masks, formats, modes,
derivatives and options, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.pace import slowness
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import ImplementationFailure, StartError, WorkerLost
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.repeated import Repeated, repeated, stands
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.engine.witness import SeenObject, SeenRequest, Witness, unbuildable, unrepeatable
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["Repeat", "repeat_independently"]

_SECONDS = 60.0
"""Besides the time in which it may be imported."""
_SIZES: Sequence[Mapping[str, Any]] = (
    {"d_model": 12, "num_heads": 3, "d_ff": 20, "vocab_size": 11, "num_layers": 2, "block_size": 16, "max_len": 16},
    {"d_model": 128, "num_heads": 4, "d_ff": 256, "vocab_size": 300, "num_layers": 2, "block_size": 64, "max_len": 64},
)
"""Small ones, and such as real models have."""
_TOKENS = (7, 40)
_WAYS = (None, "inner", "no-grad", "inference")
"""How the program makes its calls: plainly, with inputs that were computed from something, without derivatives."""
_MOST_BYTES = 128 << 20

_Asked = tuple[Mapping[str, Any], Mapping[str, Array], Reply]


@dataclass(frozen=True, slots=True)
class Repeat:
    """What a program of its own got otherwise, by component, and a note about what it could not do."""

    problems: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def changed(self, results: Sequence[Result]) -> Iterator[Result]:
        """Yield the results that are earned nowhere but in the worker, without their passes."""
        for component, told in self.problems.items():
            yield from _changed(results, component, told)


@dataclass(slots=True)
class _Recorder:
    """Passes requests on, and keeps them."""

    implementation: Implementation
    is_torch: bool
    asked: list[_Asked] = field(default_factory=list)

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Reply:
        reply = self.implementation.request(header, tensors)
        self.asked.append((header, tensors, reply))
        return reply


def repeat_independently(implementation: Implementation, seed: int) -> Repeat:
    """Repeat in a program of its own calls of each component: at usual sizes, and a sample of those of clauses."""
    session = implementation.session
    if not isinstance(session, Session) or session.device != "cpu":
        return Repeat()
    witness, implementation.witness = implementation.witness or Witness(seed), None  # what follows is no clause's
    cases: list[Repeated] = []
    left_out: list[str] = []
    room = _MOST_BYTES
    for subject in implementation.subjects():
        own = [*_cases(implementation, subject, seed), *_asked_by_clauses(subject, witness)]
        made = [case for case in own if (room := room - case.size()) > 0]
        cases += made
        left_out += [] if made else [subject.name]
    cases.sort(key=lambda case: case.story is not None)  # a user's program has not been seeded: these come first
    note = _note([*left_out, *sorted(implementation.tools())], sorted(witness.left_out))
    return Repeat(_problems(implementation, session, cases) if cases else {}, note)


def _note(whole: Sequence[str], asked: Sequence[str]) -> str:
    """Say what is not repeated: these parts, and of the others what clauses asked; nothing if that is nothing."""
    lines = [", ".join(whole)] if whole else []
    lines += [f"{'of the others, ' if whole else ''}{', '.join(asked)}"] if asked else []
    return f"not repeated in a program of its own: {'; '.join(lines)}" if lines else ""


def _asked_by_clauses(subject: Subject, witness: Witness) -> Iterator[Repeated]:
    if subject.bound.failure is None:
        yield from (repeated(subject, story) for story in witness.stories(subject.bound.path))


def _cases(implementation: Implementation, subject: Subject, seed: int) -> Iterator[Repeated]:
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
            if not unbuildable(recorder.asked[0][0], recorder.asked[0][2]):
                yield from _calls_of(instance, recorder, inputs, weights)
        except NOT_ITS_FAULT:
            raise
        except Exception:  # noqa: BLE001, S112 - sizes that it refuses, say
            continue


def _calls_of(
    instance: Instance, recorder: _Recorder, inputs: Sequence[Array], weights: Mapping[str, Array]
) -> Iterator[Repeated]:
    """Yield calls with these inputs and such as begin like them; of a model, a generated text that no seed changes."""
    subject = instance.subject
    recorder.asked[1:] = []
    for given in (inputs, _changed_last(inputs), inputs, inputs):
        instance(*given)
    yield from _case(
        subject, recorder.asked, weights, _WAYS if subject.offers("gradients") else (None, None, *_WAYS[2:])
    )
    if subject.bound.generation is None or inputs[0].dtype.kind != "i":
        return
    recorder.asked[1:] = []
    for seed in (1, 2):
        instance.generate(inputs[0][:, :3], 4, greedy=True, seed=seed)
    first, second = (reply.tensors["out"] for _, _, reply in recorder.asked[1:])
    if np.array_equal(first, second):
        yield from _case(subject, recorder.asked, weights, (None, None))


def _changed_last(inputs: Sequence[Array]) -> list[Array]:
    """Return inputs that begin like these: only the last vector or id of the first input differs."""
    first = inputs[0].copy()
    if first.dtype.kind == "f":
        first[..., -1, :] = -first[..., -1, :]
    elif first.ndim:
        first[..., -1] = first[..., 0]
    return [first, *inputs[1:]]


def _case(
    subject: Subject, asked: Sequence[_Asked], weights: Mapping[str, Array], ways: Sequence[str | None]
) -> Iterator[Repeated]:
    """Yield a case of what the worker was asked; nothing where a plain program could not do the same."""
    (build, built_with, _), *calls = asked
    if not any(unrepeatable(header, reply) for header, _, reply in calls):
        steps = [SeenRequest({"op": "write"}, weights, {})] if weights else []
        for (header, given, reply), way in zip(calls, ways, strict=True):
            steps.append(SeenRequest({**header, "op": "call", "seed": None, "way": way}, given, reply.tensors))
        yield repeated(subject, SeenObject(build, built_with, steps=steps, length=len(steps)), ours=True)


def _problems(implementation: Implementation, session: Session, cases: Sequence[Repeated]) -> dict[str, str]:
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
        if case.component not in found and (told := case.problem(number, reply)) and stands(implementation, case):
            found[case.component] = told
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
