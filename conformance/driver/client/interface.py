"""What the suite sees of an implementation, whatever the isolation: requests and replies in arrays."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.wire.frames import Arrays, split

__all__ = ["Arrays", "Driver", "Limits", "LoadReply", "Reply", "raise_failure"]

NO_ARRAYS: Arrays = types.MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LoadReply:
    """What was loaded: the framework it uses, its module, where it is, and what to know about how it was loaded."""

    framework: str
    version: str
    module: str
    file: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request. The arrays are the receiver's own."""

    header: dict[str, Any]
    tensors: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)


class Driver(ABC):
    """The connection to an implementation. `generation` counts workers: handles of an earlier worker are invalid.

    Raises: ImplementationFailure for an error that the implementation answers with, WorkerLost when it is gone.
    """

    def __init__(self, location: Location, framework: str | None, limits: Limits, device: str = "cpu") -> None:
        self.location = location
        self.framework = framework
        self.limits = limits
        self.device = device
        self.generation = 0

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Whether the worker is gone, so that the next request needs a restart first."""

    @abstractmethod
    def start(self) -> LoadReply:
        """Load the implementation."""

    @abstractmethod
    def restart(self) -> LoadReply:
        """Load it again, in a fresh worker."""

    @abstractmethod
    def request(self, header: Mapping[str, Any], tensors: Arrays = NO_ARRAYS, seconds: float | None = None) -> Reply:
        """Carry out one operation."""

    @property
    def waited(self) -> float:
        """For how many seconds its workers have been ready and waited for a processor."""
        return 0.0

    @property
    def note(self) -> str:
        """A note about the isolation for readers of the report."""
        return ""

    @abstractmethod
    def take_output(self) -> str:
        """Return what was printed since the last call, cleaned and shortened."""

    @abstractmethod
    def close(self) -> None:
        """End everything."""

    def batch(
        self, requests: Sequence[tuple[Mapping[str, Any], Arrays]], seconds: float | None = None
    ) -> list[Reply | ImplementationFailure]:
        """Carry out several operations in one round trip; an error in one does not stop the next ones."""
        tensors = {f"{i}/{name}": array for i, (_, own) in enumerate(requests) for name, array in own.items()}
        reply = self.request({"op": "batch", "requests": [header for header, _ in requests]}, tensors, seconds)
        return unpack(reply, len(requests))

    def load_header(self) -> dict[str, Any]:
        """Return the request that loads the implementation."""
        return {
            "op": "load", "location": self.location.header(), "framework": self.framework, "device": self.device,
        }  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unpack(reply: Reply, count: int) -> list[Reply | ImplementationFailure]:
    """Split the reply to a batch."""
    parts: list[Reply | ImplementationFailure] = []
    for header, arrays in zip(reply.header["replies"], split(reply.tensors, count), strict=True):
        parts.append(Reply(header, arrays) if header["ok"] else ImplementationFailure(**header["error"]))
    return parts


def raise_failure(header: Mapping[str, Any]) -> None:
    """Raise the error that a reply carries, if it does."""
    if not header["ok"]:
        raise ImplementationFailure(**header["error"])
