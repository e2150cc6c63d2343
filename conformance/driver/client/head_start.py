"""A warm process on its way before the harness has imported its own parts: standard library only, like what it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from conformkit.conformance.driver.errors import IsolationUnavailable, StartError
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import locate, mentions_torch
from conformkit.conformance.driver.spawn.shared import LentNursery
from conformkit.conformance.driver.spawn.warm import Nursery, nursery

__all__ = ["common_start", "head_start"]


def head_start(impl: str, isolation: str = "process", workers: int = 1) -> Nursery | None:
    """Start a warm process for an implementation, judging by its sources whether it needs torch.

    None where there is nothing to start it for: the run itself will say why. A wrong guess costs time, no more.
    """
    limits = Limits()
    try:
        location = locate(impl)
        torch = location.path is None or mentions_torch(location.path)
        if isolation == "process":
            return nursery(limits.threads, torch=torch)
        if isolation == "sandbox":
            from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess  # noqa: PLC0415 - most runs need none

            return SandboxedProcess(location, limits, torch=torch, workers=workers)
    except (FileNotFoundError, IsolationUnavailable, StartError):
        return None
    return None


@contextmanager
def common_start(impls: Iterable[str], isolation: str = "process") -> Iterator[Nursery | None]:
    """Start one warm process for implementations that are judged one after another, each in forks of its own.

    None where a sandbox holds each by itself, or where there is nothing to fork.
    """
    if isolation != "process":
        yield None
        return
    try:
        made = nursery(Limits().threads, torch=any(map(_may_need_torch, impls)))
    except (IsolationUnavailable, StartError):
        yield None
        return
    try:
        yield LentNursery(made)
    finally:
        made.close()


def _may_need_torch(impl: str) -> bool:
    try:
        path = locate(impl).path
    except FileNotFoundError:
        return True
    return path is None or mentions_torch(path)
