"""From clauses to verdicts. The only place that decides."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    Compared,
    NotApplicable,
    NotYet,
    OtherParameters,
    WeightsUnknown,
    gathering,
    related,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.excerpts import Excerpt, excerpt
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT, incomprehensible
from conformkit.conformance.engine.deadline import seconds_running
from conformkit.conformance.engine.declarations.exemptions import exempted_by, narrowed_by, too_narrow
from conformkit.conformance.engine.deferring import OutOfStep
from conformkit.conformance.engine.implementation import Absent, Implementation
from conformkit.conformance.engine.providers import provide
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.engine.silence import GivenUp
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.outline import ABSENT, LATE, SENSELESS, SILENT
from conformkit.conformance.suite.registry import Test, arguments
from conformkit.spec.clauses import Clause
from conformkit.spec.clauses import clause as find

__all__ = ["Judge", "Thoroughly", "Verdicts"]

_MOST_TIMEOUTS = 3
"""After so many clauses about a component that timed out, its others are not tried."""
_COUNT = "PARAM-COUNT"
"""How the clauses end by which a component has as many parameters as its definition."""
Thoroughly = Callable[[Clause, Callable[[Draw], None], tuple[str, ...]], None]
"""Runs the test of a clause with more draws, of these number formats."""


class Verdicts:
    """Results that exist or are being computed, shared by several judges.

    Judges in several threads may share one: `Needs:` is acyclic, so judges cannot deadlock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, Future[Result]] = {}
        self._timeouts: Counter[str] = Counter()

    @classmethod
    def of(cls, known: Iterable[Result]) -> Verdicts:
        """Return verdicts of which some are known."""
        verdicts = cls()
        for result in known:
            verdicts._results[result.clause.id] = future = Future[Result]()
            future.set_result(result)
        return verdicts

    def get(self, clause_id: str, judge: Callable[[], Result]) -> Result:
        """Return the result on a clause; call `judge` unless another judge has it or is computing it."""
        with self._lock:
            mine = clause_id not in self._results
            future = self._results.setdefault(clause_id, Future())
        if mine:
            try:
                future.set_result(judge())
            except BaseException as trouble:
                future.set_exception(trouble)
                raise
        return future.result()

    def known(self, clause_id: str) -> bool:
        """Whether there is a result on a clause."""
        future = self._results.get(clause_id)
        return future is not None and future.done()

    def timed_out(self, component: str) -> None:
        """Count a clause about this component that timed out."""
        with self._lock:
            self._timeouts[component] += 1

    def too_many_timeouts(self, component: str) -> bool:
        """Whether so many clauses about this component timed out that no other is tried."""
        return self._timeouts[component] >= _MOST_TIMEOUTS


class Judge:
    """Gives verdicts on one implementation; stores them, so that a needed clause is judged once."""

    def __init__(
        self,
        implementation: Implementation,
        tests: Mapping[str, Test],
        *,
        seed: int = 0,
        verdicts: Verdicts | None = None,
        thoroughly: Thoroughly | None = None,
    ) -> None:
        self.implementation = implementation
        self._tests = tests
        self._seed = seed
        self._verdicts = verdicts or Verdicts()
        self._thoroughly = thoroughly

    def result(self, clause_id: str) -> Result:
        """Return the verdict on a clause, after judging the clauses it needs."""
        return self._verdicts.get(clause_id, lambda: self._timed(clause_id))

    def alone(self, clause_id: str) -> Result:
        """Return the verdict on a clause, assuming that the clauses it needs hold."""
        return self._judge(find(clause_id), granted=True)

    def _timed(self, clause_id: str) -> Result:
        started = time.perf_counter()
        result = self._judge(find(clause_id))
        return replace(result, seconds=time.perf_counter() - started)

    def _judge(self, clause: Clause, *, granted: bool = False) -> Result:
        """Return the verdict on a clause; what nobody foresaw costs this clause, and no other."""
        try:
            return self._decide(clause, granted=granted)
        except NOT_ITS_FAULT:
            raise
        except Exception as trouble:  # noqa: BLE001 - the boundary
            return _senseless(clause, trouble)

    def _decide(self, clause: Clause, *, granted: bool) -> Result:
        if clause.id not in self._tests:
            return Result(clause, Verdict.NOT_RUN, reason="this version has no test for it", tried=False)
        lacking = self._lacking(clause)
        if lacking is not None:
            return lacking
        why = self._why_not_applicable(clause)
        if why is not None:
            key = self._exempted(clause, why) if why.lacks else ""
            return Result(clause, Verdict.NOT_APPLICABLE, reason=str(why), tried=False, exempted_by=key)
        cause = "" if granted else self._blocked_by(clause)
        if cause:
            return _blocked(clause, cause)
        if self._verdicts.too_many_timeouts(clause.component):
            sentence = f"{_MOST_TIMEOUTS} clauses about {clause.component} timed out before; its others are not tried"
            return Result(clause, Verdict.NOT_RUN, reason=sentence, tried=False)
        result = self._try(clause)
        if result.verdict is Verdict.TIMEOUT:
            self._verdicts.timed_out(clause.component)
            self.implementation.told_late()
        return result

    def _lacking(self, clause: Clause) -> Result | None:
        """Return the verdict if the clause's subject is missing or a stub, else None."""
        name, stubs = clause.component, self.implementation.stubs
        if name != "all" and not self.implementation.has(name):
            excuse = self.implementation.excused(name)
            if excuse:
                return Result(clause, Verdict.NOT_APPLICABLE, reason=excuse, tried=False)
            if name in stubs:
                return self._unfinished(clause, name)
            unusable = self.implementation.unusable.get(name)
            if unusable is not None:
                return Result(clause, Verdict.NOT_RUN, reason=unusable.problem, tried=False)
            reason = self._why_absent(name)
            key = self._exempted(clause, NotApplicable(reason))
            return Result(clause, Verdict.NOT_IMPLEMENTED, reason=reason, tried=False, exempted_by=key)
        return self._unfinished(clause, "generate") if clause.generates and "generate" in stubs else None

    def _unfinished(self, clause: Clause, name: str) -> Result:
        reason = f"{name} is not implemented yet: {self.implementation.stubs[name]}"
        return Result(clause, Verdict.NOT_IMPLEMENTED, reason=reason, unfinished=True, tried=False)

    def _why_absent(self, component: str) -> str:
        if component in self.implementation.config.skipped():
            return (
                f"{component} is skipped ({self.implementation.config.leaves_out_by(component)} = true in conform.toml)"
            )
        if component in self.implementation.unfit:
            return self.implementation.unfit[component].problem
        error = self.implementation.errors.get(component)
        if error:
            return f"{component} could not be imported: {error}"
        whole = self.implementation.judged_inside(component)
        return f"{component} is not seen on its own, only inside {whole}" if whole else f"{component} is not exported"

    def _failed(self, clause: Clause, failure: ClauseFailure) -> Result:
        about_numbers = failure.compared is not None or failure.finding.about_numbers
        narrow = too_narrow(self.implementation, clause.component) if about_numbers else ""
        if narrow:
            return self._undecided(clause, NotApplicable.from_sizes(narrow))
        return Result(clause, Verdict.FAIL, self._related(failure), excerpt=_shown(failure.compared))

    def _related(self, failure: ClauseFailure) -> Finding:
        """Return what a check found, with how the result is related to the wanted one."""
        return related(failure)

    def _undecided(
        self, clause: Clause, reason: Absent | NotApplicable | NotYet | NoSizeError | LimitWithoutValue
    ) -> Result:
        if isinstance(reason, LimitWithoutValue):
            self.implementation.cannot_judge(clause.component, str(reason))
            return Result(clause, Verdict.NOT_RUN, reason=str(reason), outline=SILENT)
        if isinstance(reason, NotYet):
            return _blocked(clause, reason.clause_id)
        if isinstance(reason, Absent):
            return Result(clause, Verdict.NOT_IMPLEMENTED, reason=f"{reason} is not exported", outline=ABSENT)
        why = NotApplicable.from_sizes(str(reason)) if isinstance(reason, NoSizeError) else reason
        return Result(
            clause, Verdict.NOT_APPLICABLE, reason=str(why), outline=SILENT, exempted_by=self._exempted(clause, why)
        )

    def _exempted(self, clause: Clause, why: NotApplicable) -> str:
        return exempted_by(self.implementation, clause.component, why)

    def _why_not_applicable(self, clause: Clause) -> NotApplicable | None:
        """Compare the clause's conditions with the declared variant and with what the implementation can do."""
        if clause.component == "all":
            return None
        subject = self.implementation.part(clause.component)
        for name, wanted in clause.applies.items():
            if hasattr(subject.variant, name):
                if not subject.variant.meets(name, wanted):
                    value = getattr(subject.variant, name)
                    return NotApplicable(f"{name} is {str(value).lower() if isinstance(value, bool) else value}")
            elif getattr(subject.bound, "failure", None) is None and subject.offers(name) != (wanted == "yes"):
                return NotApplicable(f"{clause.component} {'has no' if wanted == 'yes' else 'has'} {name}", name)
        return None

    def _blocked_by(self, clause: Clause) -> str:
        """Return the failed clause because of which this one is not checked, or nothing."""
        for needed in clause.needs:
            result = self.result(needed)
            if result.verdict.red:
                return needed
            if result.verdict is Verdict.BLOCKED:
                return result.blocked_by
        return ""

    @np.errstate(all="ignore")  # NaN and overflow in what it returns are for the checks to find
    def _try(self, clause: Clause) -> Result:
        test = self._tests[clause.id]
        self.implementation.check_time()
        self.implementation.session.take_output()
        with gathering(*self.implementation.accuracy(clause.component)) as evidence:
            result = self._outcome(clause, test)
        if result.verdict is Verdict.PASS and not evidence.checks:
            result = Result(clause, Verdict.NOT_RUN, reason=_NOTHING_LEFT, outline=SILENT)
        elif result.verdict is Verdict.FAIL and evidence.withheld is not None:
            self.implementation.lacks_mask(evidence.withheld)
            result = Result(clause, Verdict.NOT_RUN, reason=evidence.withheld.problem, outline=SILENT)
        elif result.verdict is Verdict.PASS:
            result = replace(result, exempted_by=narrowed_by(self.implementation, clause))
        with suppress(DriverError):
            self.implementation.tidy()
        return replace(
            result, distance=evidence.distance, output=self.implementation.session.take_output(),
            extents=evidence.extents, remark=evidence.remark,
            finding=evidence.placed(result.finding) if result.finding is not None else None,
        )  # fmt: skip

    @contextmanager
    def _own_findings(self, clause: Clause) -> Iterator[None]:
        """Raise what would be another clause's finding as this one's own unless another one finds something."""
        try:
            yield
        except NotYet as early:
            if early.failure is None:
                raise
            finder = next((i for i in (early.clause_id, *self._others(clause)) if self._is_against(i)), "")
            if finder:
                raise NotYet(finder) from None
            raise early.failure from None
        except OtherParameters as other:
            finder = next((i for i in self._counts(clause, other.component) if self._is_against(i)), "")
            if finder:
                raise NotYet(finder) from None
            raise

    def _counts(self, clause: Clause, component: str) -> Iterator[str]:
        """Yield the clauses on how many parameters a component has, but this one and those that wait for it."""
        for other in map(find, self._tests):
            if other.component == component and other.id.endswith(_COUNT) and not _waits(other.id, clause.id):
                yield other.id

    def _others(self, clause: Clause) -> Iterator[str]:
        """Yield the binding clauses about the same component and small sizes, but those that wait for this one."""
        for other in map(find, self._tests):
            alike = other.component == clause.component and other.level == clause.level
            if alike and clause.component != "all" and not other.sizes and not _waits(other.id, clause.id):
                yield other.id

    def _is_against(self, clause_id: str) -> bool:
        verdict = self.result(clause_id).verdict
        return verdict.red or verdict is Verdict.BLOCKED

    def _clock(self) -> float:
        return seconds_running(self.implementation.session)

    def _run(
        self, clause: Clause, test: Test, draw: Draw, trips: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        with self._own_findings(clause), trips():
            test(**provide(arguments(test), self.implementation, draw))

    def _run_in_few_trips(self, clause: Clause, test: Test, forms: tuple[str, ...]) -> None:
        """Run a test with the clause's own draws; if what waits does not what was expected, once more step by step."""
        draws = (
            Draw(self._seed, clause.id, forms, clause.sizes, exact=clause.generates, clock=self._clock)
            for _ in range(2)
        )
        try:
            self._run(clause, test, next(draws), self.implementation.in_few_trips)
        except OutOfStep:
            self._run(clause, test, next(draws))

    def _outcome(self, clause: Clause, test: Test) -> Result:
        forms = self.implementation.forms()

        def run(draw: Draw) -> None:
            self._run(clause, test, draw)

        try:
            self._run_in_few_trips(clause, test, forms)
            if self._thoroughly is not None:
                self._thoroughly(clause, run, forms)
        except WeightsUnknown as unsure:
            return Result(clause, Verdict.NOT_RUN, reason=str(unsure), outline=SILENT)
        except ClauseFailure as failure:
            return self._failed(clause, failure)
        except (Absent, NotApplicable, NotYet, NoSizeError, LimitWithoutValue) as reason:
            return self._undecided(clause, reason)
        except (ImplementationFailure, WorkerLost, PatternError) as trouble:
            return _troubled(clause, trouble)
        except NOT_ITS_FAULT:
            raise
        except Exception as trouble:  # noqa: BLE001 - the boundary
            return _senseless(clause, trouble)
        return Result(clause, Verdict.PASS)


_NOTHING_LEFT = "its test found nothing to check: what is declared or returned leaves no case of it"


def _blocked(clause: Clause, cause: str) -> Result:
    reason = f"not checked until {cause} passes"
    return Result(clause, Verdict.BLOCKED, reason=reason, blocked_by=cause, tried=False)


@cache
def _waits(clause_id: str, needed: str) -> bool:
    """Whether a clause is not checked before another one."""
    return clause_id == needed or any(_waits(other, needed) for other in find(clause_id).needs)


def _shown(compared: Compared | None) -> Excerpt | None:
    """Return an excerpt of the compared arrays; None for arrays that should differ but are equal."""
    if compared is None or compared.alike:
        return None
    return excerpt(compared.got, compared.want, compared.allowed, compared.hidden)


def _troubled(clause: Clause, trouble: ImplementationFailure | WorkerLost | PatternError) -> Result:
    if isinstance(trouble, GivenUp):
        return Result(clause, Verdict.NOT_RUN, reason=trouble.detail, outline=LATE)
    if isinstance(trouble, WorkerLost):
        verdict = Verdict.TIMEOUT if trouble.kind == "timeout" else Verdict.CRASH
        return Result(clause, verdict, Finding(Kind.LOST, clause.component, error=trouble.kind, said=trouble.detail))
    if isinstance(trouble, ImplementationFailure):
        return _raised(clause, trouble)
    return Result(clause, Verdict.ERROR, Finding(Kind.NOWHERE, clause.component, said=str(trouble)))


def _senseless(clause: Clause, trouble: Exception) -> Result:
    """A strange reply costs its clause, never the run. The test may be wrong, so nothing is said to be broken."""
    reason = f"{SENSELESS}: {incomprehensible(trouble)}"
    return Result(clause, Verdict.NOT_RUN, reason=reason, outline=SENSELESS)


def _raised(clause: Clause, failure: ImplementationFailure) -> Result:
    kind = {"memory": Kind.LOST, "exit": Kind.ENDED, "output": Kind.NO_ARRAY}.get(failure.kind, Kind.RAISED)
    verdict = Verdict.CRASH if kind in {Kind.LOST, Kind.ENDED} else Verdict.ERROR
    error = failure.kind if kind is Kind.LOST else failure.type
    found = Finding(kind, clause.component, error=error, said=failure.message)
    return Result(clause, verdict, found, where=failure.where)
