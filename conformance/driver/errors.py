"""What the driver raises.

DriverError
├── ImplementationFailure   the implementation answered with an error; the worker lives on
├── WorkerLost              the worker died or was killed; restart before the next request
├── ProtocolError           bytes on the wire that are no frame, or not the frame that was due
├── StartError              the driver cannot run here, whatever the implementation is
└── IsolationUnavailable    the isolation asked for is not to be had here; no lesser one takes its place
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = [
    "FAILURES",
    "DriverError",
    "FailureKind",
    "ImplementationFailure",
    "IsolationUnavailable",
    "LossKind",
    "ProtocolError",
    "StartError",
    "WorkerLost",
]

FailureKind = Literal["exception", "exit", "memory", "unsupported", "output", "load", "request"]
LossKind = Literal["timeout", "signal", "exit", "memory", "processes", "output", "protocol"]
FAILURES: frozenset[str] = frozenset(get_args(FailureKind))


class DriverError(Exception):
    """Anything that keeps a request from its answer."""


class ImplementationFailure(DriverError):
    """The implementation refused, raised, or returned what is no array.

    `kind` tells which, `type` names the exception, `where` is the implementation's own innermost line, or empty.
    """

    def __init__(self, kind: FailureKind, type: str, message: str, where: str = "") -> None:  # noqa: A002
        self.kind = kind
        self.type = type
        self.message = message
        self.where = where
        super().__init__(f"{type}: {message}" if message else type)


class WorkerLost(DriverError):
    """The worker is gone. `kind` tells how it went, `detail` is a sentence about it."""

    def __init__(self, kind: LossKind, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(detail)


class ProtocolError(DriverError):
    """Bytes that are no frame, or not the frame that was due."""


class StartError(DriverError):
    """The driver cannot run here, whatever the implementation is."""


class IsolationUnavailable(DriverError):
    """The isolation asked for is not to be had here. `advice` tells how to get it."""

    def __init__(self, problem: str, *advice: str) -> None:
        super().__init__(problem)
        self.advice = advice
