"""What the driver raises.

DriverError
├── ImplementationFailure   the implementation answered with an error; the worker lives on
├── WorkerLost              the worker died or was killed; restart before the next request
├── ProtocolError           bytes on the wire that are not a frame, or not the expected frame
├── StartError              the driver cannot run here, whatever the implementation is
├── IsolationUnavailable    the requested isolation is not available here; there is no silent downgrade
└── DeviceUnavailable       the device that exists in name only needs another version of the framework
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = [
    "FAILURES",
    "DeviceUnavailable",
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
    """Any reason why a request gets no answer."""


class ImplementationFailure(DriverError):
    """The implementation refused, raised, or returned something that is not an array.

    `kind` says which, `type` names the exception and `base` the built-in one that it derives from, `where` is the
    implementation's own innermost line, or empty.
    """

    def __init__(
        self,
        kind: FailureKind,
        type: str,  # noqa: A002
        message: str,
        where: str = "",
        base: str = "",
    ) -> None:
        self.kind = kind
        self.base = base or type
        self.type = type
        self.message = message
        self.where = where
        super().__init__(f"{type}: {message}" if message else type)


class WorkerLost(DriverError):
    """The worker is gone. `kind` says how it ended, `detail` is a sentence about it."""

    def __init__(self, kind: LossKind, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(detail)


class ProtocolError(DriverError):
    """Bytes that are not a frame, or not the expected frame."""


class StartError(DriverError):
    """The driver cannot run here, whatever the implementation is."""


class IsolationUnavailable(DriverError):
    """The requested isolation is not available here. `advice` says how to get it."""

    def __init__(self, problem: str, *advice: str) -> None:
        super().__init__(problem)
        self.advice = advice


class DeviceUnavailable(DriverError):
    """The framework's version has no hooks for a device that exists in name only. `advice` says which one has."""

    def __init__(self, problem: str, *advice: str) -> None:
        super().__init__(problem)
        self.advice = advice
