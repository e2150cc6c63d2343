"""Judge one clause, and write its failure as a script."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from conformkit.conformance.apps.repro.matching import Origin
from conformkit.conformance.apps.repro.naming import Imports
from conformkit.conformance.apps.repro.recording import Record, Recorder
from conformkit.conformance.apps.repro.scene import Irreproducible, Scene, Sighting, choose, perform
from conformkit.conformance.apps.repro.script import Script, write_script
from conformkit.conformance.apps.repro.smaller import Definite, against_definition, smaller
from conformkit.conformance.assertions.checks import ClauseFailure, Compared
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.discovery.opening import opened_as_found
from conformkit.conformance.driver.errors import ImplementationFailure, ProtocolError, WorkerLost
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.needed import needed
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.subject.component import Instance
from conformkit.conformance.suite.registry import Test, tests
from conformkit.conformance.text import one_line
from conformkit.spec.clauses import Clause, clause

__all__ = ["Reproduction", "reproduce"]

_VISIBLE = 1e-3
"""If a clause measures something else than outputs, an output with this error shows the mistake."""
_MEASURED = "The clause does not measure an output; below, the output itself differs from the definition's."
_SMALLER = "Below is a smaller call that shows it too; --no-shrink keeps the one that was judged."


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The verdict on the clause, and a script that shows why; without a script, `reason` says why."""

    result: Result
    script: Script | None = None
    reason: str = ""


@dataclass(slots=True)
class _Watch:
    """The requests made while the test of the clause ran."""

    recorder: Recorder
    instances: dict[int, Instance] = field(default_factory=dict)
    compared: Compared | None = None
    ended: int | None = None
    """How many requests there were when the test ended."""

    def built(self, instance: Instance) -> None:
        self.instances[instance.handle] = instance

    def over(self, test: Test) -> Test:
        """Return the test with recording. Clauses that it needs are judged before it runs."""

        @wraps(test)
        def watched(**provided: Any) -> None:
            self.recorder.records.clear()
            try:
                test(**provided)
            except ClauseFailure as failure:
                self.compared = failure.compared
                raise
            finally:
                self.ended = len(self.recorder.records)

        return watched

    def of_the_test(self) -> list[Record]:
        """Return what was recorded until the test ended: what explains a failure calls the code again, after it."""
        return self.recorder.records[: self.ended]


_OTHERWISE = (
    ArithmeticError, ClauseFailure, ImplementationFailure, LookupError, ProtocolError, TypeError, ValueError,
    WorkerLost,
)  # fmt: skip
"""Errors if an implementation answers differently when it is asked again, or not at all."""


def reproduce(request: RunRequest, clause_id: str, folder: Path, again: str, *, shrink: bool = True) -> Reproduction:
    """Judge the clause; if it fails, return a script for `folder`. `again` is the command that makes it again.

    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    wanted = needed(replace(request, only=(clause_id,)), [clause(clause_id)])
    with opened_as_found(request, wanted=wanted) as (implementation, location):
        watch = _Watch(Recorder(implementation.session))
        implementation.session = watch.recorder
        implementation.watch(watch.built)
        suite = {name: watch.over(test) if name == clause_id else test for name, test in tests().items()}
        result = Judge(implementation, suite, seed=request.seed).result(clause_id)
        reason = _reason(result)
        if reason:
            return Reproduction(result, reason=reason)
        try:
            scene = _scene(implementation, result.clause, watch, shrink=shrink)
            imports = Imports(watch.recorder, location.name, folder)
            script = write_script(scene, imports, implementation.framework, _title(result, request.impl), again)
        except Irreproducible as irreproducible:
            return Reproduction(result, reason=str(irreproducible))
        except _OTHERWISE as trouble:
            return Reproduction(result, reason=f"asked again, it did not answer as before: {one_line(str(trouble))}")
    return Reproduction(result, script)


def _reason(result: Result) -> str:
    """Return why there is nothing to write a script about."""
    if result.verdict is Verdict.BLOCKED:
        return f"it is not checked until {result.blocked_by} passes; try conform repro {result.blocked_by}"
    if result.verdict is Verdict.TIMEOUT:
        return "the call timed out: a script would not end either"
    if result.verdict is Verdict.CRASH:
        return "the process ended in that call, and its data was lost"
    if not result.verdict.red:
        return result.reason or "it holds"
    return ""


def _title(result: Result, impl: str) -> str:
    lines = [f"{result.clause.id} fails for {impl}: {result.clause.title[:1].lower()}{result.clause.title[1:]}"]
    lines += ["", f"The clause says: {result.message}", *(f"    {line}" for line in result.details)]
    return "\n".join(lines)


def _scene(implementation: Implementation, clause: Clause, watch: _Watch, *, shrink: bool) -> Scene:
    records, driver = watch.of_the_test(), watch.recorder
    if not any(record.operation == "build" for record in records):
        return choose(_first_attempt(implementation, clause, watch), None, driver)
    definite = _definite(watch, records)
    if definite is not None and shrink and watch.compared is not None:
        largest = max(float(np.abs(watch.compared.want).max(initial=0.0)), 1e-30)
        tolerance = watch.compared.allowed / largest
        if _is_definition(watch.compared, definite) and definite.error > tolerance:
            return _of(definite, smaller(definite, tolerance), watch)
    try:
        scene = choose(records, watch.compared, driver)
    except Irreproducible:
        if definite is None or definite.error < _VISIBLE:
            raise
        scene = None
    visible = definite is not None and definite.error > _VISIBLE
    if definite is None or (scene is not None and (scene.finding is not None or scene.raises or not visible)):
        assert scene is not None
        return scene
    found = _of(definite, smaller(definite, _VISIBLE) if shrink else definite, watch)
    return replace(found, note=f"{_MEASURED} {found.note}".strip())


def _first_attempt(implementation: Implementation, clause: Clause, watch: _Watch) -> list[Record]:
    """Build and call again a component that could not be built or called during binding."""
    if not implementation.has(clause.component):
        return []
    subject = implementation.subject(clause.component)
    with suppress(ImplementationFailure, ClauseFailure):
        subject.retried().example(Draw(0, clause.id))
    records = list(watch.recorder.records)
    if records and records[-1].failure is None:
        with suppress(ImplementationFailure, ClauseFailure):
            instance = watch.instances[max(watch.instances)]
            instance(*instance.example_inputs(Draw(0, clause.id)))
    return list(watch.recorder.records)


def _definite(watch: _Watch, records: Sequence[Record]) -> Definite | None:
    """Return the last call, repeated, with the definition's result for it."""
    number = next((n for n in reversed(range(len(records))) if records[n].calls), None)
    if number is None or records[-1].failure is not None or records[number].handle is None:
        return None
    original = watch.instances.get(records[number].handle or 0)
    if original is None or original.subject.bound.rules is None:
        return None
    own = [r for r in records[: number + 1] if r.handle == original.handle]
    steps = [r for r in own if r.operation in {"build", "write", "cast"}] + [own[-1]]
    try:
        replies, handles = perform(steps, watch.recorder)
    except ImplementationFailure:
        return None
    again = Instance(original.subject, dict(original.sizes), handles[original.handle], original.listing, original.dtype)
    return against_definition(again, Record(own[-1].header, own[-1].arrays, replies[-1].header, replies[-1].tensors))


def _is_definition(compared: Compared, definite: Definite) -> bool:
    """Whether the check compared this call's output with the definition's."""
    if compared.alike or compared.want.shape != definite.want.shape or not definite.want.size:
        return False
    scale = max(float(np.abs(definite.want).max()), 1e-30)
    return bool(np.abs(compared.want - definite.want).max() <= 1e-9 * scale)


def _of(judged: Definite, definite: Definite, watch: _Watch) -> Scene:
    """Repeat it, and keep the requests."""
    instance = definite.instance
    watch.recorder.restart()
    fresh = instance.subject.construct(instance.sizes, dtype=instance.dtype)
    if instance.weights:
        fresh.write(instance.weights)
    fresh.call(*definite.inputs)
    steps = tuple(r for r in watch.recorder.records if r.operation in {"build", "write", "call"})
    last = len(steps) - 1
    want = instance.subject.bound.to_theirs(definite.want)
    note = "" if definite is judged else _SMALLER
    return Scene(steps, (last,), Sighting(Origin(last, "out", "{}"), None, want), note)
