"""What the harness computes while a worker computes: with one worker, each would otherwise wait for the other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["beside", "do_waiting_work", "has_waiting_work"]

Got = TypeVar("Got")
Made = TypeVar("Made")
_waiting: ContextVar[Callable[[], None] | None] = ContextVar("_waiting", default=None)
"""What is to be done when the next request of this thread has been sent."""


def beside(call: Callable[[], Got], work: Callable[[], Made]) -> tuple[Got, Made]:
    """Return what a call of the implementation gives, and what is made meanwhile, which asks it nothing.

    If `work` raises, it does so after the call; without a worker of its own it begins then.
    """
    made: list[Made] = []
    token = _waiting.set(lambda: made.append(work()))
    try:
        got = call()
    finally:
        _waiting.reset(token)
    return got, made[0] if made else work()


def has_waiting_work() -> bool:
    """Whether something is to be done when a request has been sent."""
    return _waiting.get() is not None


def do_waiting_work() -> None:
    """Do it, once; what it raises is raised where it is needed."""
    work = _waiting.get()
    _waiting.set(None)
    with suppress(Exception):
        work() if work is not None else None
