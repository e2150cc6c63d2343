"""The requests to an implementation, and the replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformkit.conformance.driver.client.interface import NO_ARRAYS, Arrays, Driver, LoadReply, Reply, unpack
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.wire.frames import split
from conformkit.spec.arrays import Array

__all__ = ["Record", "Recorder"]


@dataclass(frozen=True, slots=True)
class Record:
    """One request with its reply, or with the exception."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Array]
    reply: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Array] = field(default_factory=dict)
    failure: ImplementationFailure | None = None

    @property
    def operation(self) -> str:
        """The operation: `build`, `write`, `call`, …."""
        return str(self.header["op"])

    @property
    def handle(self) -> int | None:
        """The object that it uses; for an operation that creates one, the new object."""
        found = self.reply.get("handle") if self.operation in {"build", "copy"} else self.header.get("handle")
        return None if found is None else int(found)

    @property
    def calls(self) -> bool:
        """Whether the implementation computed something."""
        return self.operation in {"call", "vjp"}


class Recorder(Driver):
    """Passes everything on to a driver and records it. Arrays are copied, since tests change theirs in place."""

    def __init__(self, inner: Driver) -> None:
        super().__init__(inner.location, inner.framework, inner.limits)
        self._inner = inner
        self.records: list[Record] = []

    @property
    def lost(self) -> bool:
        """Whether the worker is gone."""
        return self._inner.lost

    def start(self) -> LoadReply:
        """Load the implementation."""
        return self._inner.start()

    def restart(self) -> LoadReply:
        """Load it again; earlier objects are gone."""
        self.records.clear()
        return self._inner.restart()

    def request(self, header: Mapping[str, Any], tensors: Arrays = NO_ARRAYS, seconds: float | None = None) -> Reply:
        """Carry out one operation and record it."""
        given = _copied(tensors)
        try:
            reply = self._inner.request(header, tensors, seconds)
        except ImplementationFailure as failure:
            self.records.append(Record(dict(header), given, failure=failure))
            raise
        if header["op"] == "batch":
            self._keep_parts(header["requests"], given, reply)
        else:
            self.records.append(Record(dict(header), given, reply.header, _copied(reply.tensors)))
        return reply

    def take_output(self) -> str:
        """Return what was printed since the last call."""
        return self._inner.take_output()

    def close(self) -> None:
        """End everything."""
        self._inner.close()

    def _keep_parts(self, requests: list[dict[str, Any]], arrays: Mapping[str, Array], reply: Reply) -> None:
        parts = zip(requests, split(dict(arrays), len(requests)), unpack(reply, len(requests)), strict=True)
        for header, given, answer in parts:
            if isinstance(answer, ImplementationFailure):
                self.records.append(Record(header, given, failure=answer))
            else:
                self.records.append(Record(header, given, answer.header, _copied(answer.tensors)))


def _copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.array(array) for name, array in arrays.items()}
