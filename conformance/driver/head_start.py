"""A warm process on its way before the harness has imported its own parts: standard library only, like what it uses."""

from __future__ import annotations

from conformkit.conformance.driver.errors import StartError
from conformkit.conformance.driver.location import locate, mentions_torch
from conformkit.conformance.driver.warm import Nursery, nursery

__all__ = ["head_start"]


def head_start(impl: str, threads: int = 1) -> Nursery | None:
    """Start a warm process for an implementation, judging by its sources whether it needs torch.

    None where there is nothing to start it for: the run itself will say why. A wrong guess costs time, no more.
    """
    try:
        location = locate(impl)
        return nursery(threads, torch=location.path is None or mentions_torch(location.path))
    except (FileNotFoundError, StartError):
        return None
