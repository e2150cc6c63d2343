"""Start a warm process before the harness imports its own parts. Standard library only, as in everything it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from conformkit.conformance.driver.errors import IsolationUnavailable, StartError
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import Location, locate, mentions_torch
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory

__all__ = ["HeadStart", "common_start", "head_start"]


@dataclass(frozen=True, slots=True)
class HeadStart:
    """What a run need not find or start any more: where the implementation is, and a warm process for its workers.

    Without a location, the run looks for it and says why it is not there.
    """

    location: Location | None = None
    warm: WorkerFactory | None = None

    def close(self) -> None:
        """End the warm process, if there is one."""
        if self.warm is not None:
            self.warm.close()


def head_start(impl: str, isolation: str = "process", workers: int = 1) -> HeadStart:
    """Find an implementation and start a warm process for it, judging by its sources whether it needs torch.

    What cannot be found or started is left to the run, which says why. A wrong guess only costs time.
    """
    try:
        location = locate(impl)
    except FileNotFoundError:
        return HeadStart()
    try:
        return HeadStart(location, _started(location, isolation, workers))
    except (IsolationUnavailable, StartError):
        return HeadStart(location)


def _started(location: Location, isolation: str, workers: int) -> WorkerFactory | None:
    if isolation not in {"process", "sandbox"}:
        return None
    limits = Limits()
    if isolation == "process":
        return worker_factory(limits.threads, torch=_may_need_torch(location))
    from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess  # noqa: PLC0415 - most runs need none

    return SandboxedProcess(location, limits, torch=_may_need_torch(location), workers=workers)


@contextmanager
def common_start(impls: Iterable[str], isolation: str = "process") -> Iterator[dict[str, HeadStart]]:
    """Find implementations, and start one warm process for all of them; each is judged in forks of its own.

    No process is shared where a sandbox holds each by itself, or where there is nothing to judge or to fork.
    """
    places = {impl: _place(impl) for impl in impls}
    starts = {impl: HeadStart(place) for impl, place in places.items()}
    if isolation != "process" or not places:
        yield starts
        return
    try:
        made = worker_factory(Limits().threads, torch=any(map(_may_need_torch, places.values())))
    except (IsolationUnavailable, StartError):
        yield starts
        return
    try:
        yield {impl: HeadStart(place, LentFactory(made)) for impl, place in places.items()}
    finally:
        made.close()


def _place(impl: str) -> Location | None:
    try:
        return locate(impl)
    except FileNotFoundError:
        return None


def _may_need_torch(location: Location | None) -> bool:
    return location is None or location.path is None or mentions_torch(location.path)
