"""A watching session: one warm process, and a run for each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from conformkit.conformance.apps.watch.affected import Change, change
from conformkit.conformance.apps.watch.since import reached
from conformkit.conformance.apps.watch.snapshot import Files, Lookout
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.location import Location, locate, mentions_torch
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.collecting import Progress
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Clause, select

__all__ = ["Early", "Judged", "Superseded", "WatchSession", "broke", "mended"]


_LOOKS = 0.1
"""Seconds between two looks at the files during a run."""
_MOST_GIVEN_UP = 3
"""After so many runs in a row that a save ended, one goes on to its end: code may change its own files."""


class Superseded(Exception):
    """A file was saved before the run ended: the judged code is outdated."""


@dataclass(frozen=True, slots=True)
class Early:
    """The results of the clauses about the change, before the rest is judged."""

    results: tuple[Result, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A run, and the last complete one before it."""

    report: Report
    before: Report | None
    seconds: float


class WatchSession:
    """Watches one implementation; `close` ends its warm process."""

    def __init__(self, request: RunRequest, lookout: Lookout | None = None) -> None:
        self.request = request
        self._location = locate(request.impl, request.folder)
        config = request.config if isinstance(request.config, Path) else None
        self.lookout = lookout or Lookout(self._location.path or Path(), config)
        self.files: Files = self.lookout.look()
        self.last: Report | None = None
        self._judged_files: Files = {}
        self._given_up = 0
        self._stack = ExitStack()
        self._warm: LentFactory | None = None

    @property
    def path(self) -> Path | None:
        """The implementation's location; None if it is unknown, and nothing can be watched."""
        return self._location.path

    def wait(self) -> Change:
        """Wait for a save; return what differs from the last judged files."""
        self.files = self.lookout.wait(self.files)
        return change(self._judged_files, self.files)

    def judge(self, changed: Change | None, on_early: Callable[[Early], None]) -> Judged:
        """Judge the current code, clauses about the change first. Raises LoadFailure, ConfigError, Superseded."""
        started = time.perf_counter()
        first = self._first(changed)
        watcher = _Progress(self, first, on_early, started)
        with self._factory() as warm:
            report = run(replace(self.request, judge_first=first), watcher, early=HeadStart(self._place(changed), warm))
        before, self.last, self._judged_files, self._given_up = self.last, report, self.files, 0
        return Judged(report, before, time.perf_counter() - started)

    def _place(self, changed: Change | None) -> Location | None:
        """Return where it is now: a save may make a package of a folder. None if it is gone: the run says so."""
        if changed is None:
            return self._location
        try:
            return locate(self.request.impl, self.request.folder)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """End the warm process and its workers."""
        self._stack.close()
        self._warm = None

    def superseded(self) -> bool:
        """Whether the run is to be given up, since the files differ from those being judged."""
        if self._given_up >= _MOST_GIVEN_UP or self.lookout.look() == self.files:
            return False
        self._given_up += 1
        return True

    def _first(self, changed: Change | None) -> frozenset[str]:
        """Return the clauses to judge first: those about the change, and failed ones that it can affect."""
        if changed is None or changed.everything or self.last is None:
            return frozenset()
        affected = {name for name in self.last.sources if self._reached(changed, name, directly=False)}
        direct = {name for name in affected if self._reached(changed, name, directly=True)} or affected
        broken = {r.clause.id for r in self.last.results if r.verdict.red and r.clause.component in affected}
        chosen = select(self.request.only, self.request.profile)
        return frozenset(c.id for c in chosen if _concerns(c, direct) or c.id in broken)

    def _reached(self, changed: Change, name: str, *, directly: bool) -> bool:
        assert self.last is not None
        home = self.path.parent if self.path is not None else Path()
        return reached(changed, self.last.sources[name], home, self._judged_files, directly=directly)

    @contextmanager
    def _factory(self) -> Iterator[WorkerFactory]:
        """Yield the warm process, a new one if it has ended or if other imports are needed."""
        root = self.path
        torch = root is None or mentions_torch(root)
        if self._warm is None or not self._warm.alive or (torch and not self._warm.torch):
            self.close()
            made = worker_factory(self.request.limits.threads, torch=torch)
            self._stack.callback(made.close)
            self._warm = LentFactory(made)
        yield self._warm


class _Progress:
    """Reports the results of the first clauses as soon as all are judged; gives up when a file is saved."""

    def __init__(
        self, session: WatchSession, first: frozenset[str], tell: Callable[[Early], None], started: float
    ) -> None:
        self._session, self._waiting, self._tell, self._started = session, set(first), tell, started
        self._results: list[Result] = []
        self._looked = started

    def __call__(self, now: Progress) -> None:
        self._give_up_when_saved()
        if now.last is None or now.last.clause.id not in self._waiting:
            return
        self._waiting.remove(now.last.clause.id)
        self._results.append(now.last)
        if not self._waiting and now.done < now.total:
            self._tell(Early(tuple(self._results), time.perf_counter() - self._started))

    def _give_up_when_saved(self) -> None:
        if time.perf_counter() - self._looked > _LOOKS:
            if self._session.superseded():
                raise Superseded
            self._looked = time.perf_counter()


def broke(before: Report | None, results: Sequence[Result]) -> list[Result]:
    """Return the results that are red now and were not before."""
    known = {r.clause.id: r for r in before.results} if before else {}
    return [r for r in results if r.verdict.red and not (r.clause.id in known and known[r.clause.id].verdict.red)]


def mended(before: Report | None, results: Sequence[Result]) -> list[Result]:
    """Return the results that pass now and were red, blocked or not implemented before, red ones first."""
    known = {r.clause.id: r for r in before.results} if before else {}
    open_then = {name for name, r in known.items() if r.verdict.red or r.verdict in _OPEN}
    held = [r for r in results if r.verdict is Verdict.PASS and r.clause.id in open_then]
    return sorted(held, key=lambda r: not known[r.clause.id].verdict.red)


_OPEN = frozenset({Verdict.BLOCKED, Verdict.NOT_IMPLEMENTED, Verdict.NOT_RUN})


def _concerns(clause: Clause, names: set[str]) -> bool:
    return clause.component in names or (clause.generates and "generate" in names)
