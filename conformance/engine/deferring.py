"""Builds and writes whose answers are known travel with the next request: a trip costs as much as a small call."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from conformkit.conformance.driver.client.interface import Driver, Reply
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.spec.arrays import Array

__all__ = ["Deferring", "OutOfStep"]

_MAX_WAITING, _BYTES = 8, 1 << 20
"""How many requests wait at most, and how large a write that does."""
_BRIEF = 0.05
"""A build waits if it took no more than this share of the time that a call may take."""
_PLAIN = {"lazy": False, "dtype_refused": None}
"""What else the reply to a build says that can wait."""


class OutOfStep(Exception):
    """A request that had waited did not what was expected of it: the clause is judged again, step by step."""


class Deferring:
    """Requests that wait for the next one, and what is known of builds with the same arguments.

    A write has no answer. A build waits if one with the same arguments, but perhaps another seed, was answered before:
    its parameters are taken to be the same. After a surprise nothing of this implementation waits any more.
    """

    def __init__(self) -> None:
        self._on, self._trusted = False, True
        self._waiting: list[tuple[dict[str, Any], dict[str, Array]]] = []
        self._listed: dict[str, dict[str, Any]] = {}
        self._handles = count(-1, -1)

    @contextmanager
    def allowed(self, session: Driver) -> Iterator[None]:
        """Let requests wait in this context, at whose end all are sent. Raises OutOfStep, the driver's errors."""
        self._on = self._trusted
        try:
            yield
        finally:
            self._on = False
            waiting, self._waiting = self._waiting, []
            if waiting and not session.lost:
                self._check(waiting, self._together(session, waiting, None))

    def answer(self, session: Driver, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Reply | None:
        """Return the answer to a request that can wait, None for any other."""
        if not self._on or session.lost or len(self._waiting) >= _MAX_WAITING:
            return None
        if header["op"] == "write" and sum(array.nbytes for array in arrays.values()) <= _BYTES:
            self._waiting.append((dict(header), {name: array.copy() for name, array in arrays.items()}))
            return Reply({"ok": True})
        if header["op"] == "build" and not arrays and (known := self._listed.get(_key(header))) is not None:
            handle = next(self._handles)
            self._waiting.append(({**header, "as": handle}, {}))
            return Reply({"ok": True, "handle": handle, "parameters": known, **_PLAIN})
        return None

    def send(
        self, session: Driver, header: Mapping[str, Any], arrays: Mapping[str, Array], seconds: float | None
    ) -> Reply:
        """Send a request with those that wait for it. Raises OutOfStep, the driver's errors."""
        waiting, self._waiting = self._waiting, []
        limit, began = session.limits.call_seconds, time.monotonic()
        if not waiting:
            reply = session.request(header, arrays, seconds)
        else:
            allowed = (limit if seconds is None else seconds) * (1.0 + _BRIEF * len(waiting))
            *earlier, last = self._together(session, [*waiting, (header, arrays)], allowed)
            self._check(waiting, earlier)
            if isinstance(last, ImplementationFailure):
                raise last
            reply = last
        if header["op"] == "build" and not arrays and time.monotonic() - began <= _BRIEF * limit and _is_plain(reply):
            self._listed[_key(header)] = reply.header["parameters"]
        return reply

    def _together(
        self, session: Driver, requests: Sequence[tuple[Mapping[str, Any], Mapping[str, Array]]], seconds: float | None
    ) -> list[Reply | ImplementationFailure]:
        """Send requests in one trip. What fails there as a whole, a reply that is too big for one, may do alone."""
        try:
            return session.batch(requests, seconds)
        except ImplementationFailure:
            self._on = self._trusted = False
            raise OutOfStep from None

    def _check(self, waiting: list[Any], replies: list[Reply | ImplementationFailure]) -> None:
        for (asked, _), reply in zip(waiting, replies, strict=True):
            if isinstance(reply, ImplementationFailure) or not self._is_expected(asked, reply):
                self._on = self._trusted = False
                raise OutOfStep

    def _is_expected(self, asked: Mapping[str, Any], reply: Reply) -> bool:
        if asked["op"] != "build":
            return True
        same = reply.header["parameters"] == self._listed[_key(asked)] and reply.header["handle"] == asked["as"]
        return same and _is_plain(reply)


def _is_plain(reply: Reply) -> bool:
    return all(reply.header[name] == value for name, value in _PLAIN.items())


def _key(header: Mapping[str, Any]) -> str:
    """Return what decides which parameters an object has."""
    return json.dumps({name: value for name, value in header.items() if name not in {"seed", "as"}}, sort_keys=True)
