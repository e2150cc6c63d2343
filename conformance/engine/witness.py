"""A sample, drawn by the seed, of what clauses ask of an implementation: objects, and what was done with them in order.

A program of its own repeats it afterwards (independent_repeat.py). Nothing more is asked of the worker for that.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.driver.client.interface import Reply
from conformkit.spec.arrays import Array

__all__ = ["SeenObject", "SeenRequest", "Witness", "unbuildable", "unrepeatable"]

_OF_A_KIND = 1
"""How many calls of each kind are kept."""
_MOST_STEPS = 12
_MOST_BYTES = 1 << 20
"""Of one object: what comes after it is not repeated."""
_WAITING = 64
"""Objects of a worker that are known."""
_HARMLESS = frozenset({"read", "parameters", "describe", "list", "release"})
"""Requests that change nothing of an object."""
_ODD = ("each", "device", "seeing", "reset", "own")
"""What a program of its own cannot do in a call."""
_WORDS = {
    "copy": "copies", "move": "moves to a device", "device": "moves to a device", "restore": "loaded states",
    "loop": "training", "train": "training", "record": "compiled copies", "each": "rows one by one",
}  # fmt: skip
_KNOWN = frozenset({"$tensor", "$self", "$name", "$dtype", "$object"})
"""What it can pass."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request, and the arrays that came back."""

    header: Mapping[str, Any]
    given: Mapping[str, Array]
    got: Mapping[str, Array]

    @property
    def compared(self) -> bool:
        """Whether it has a result."""
        return bool(self.header["op"] != "write")


@dataclass(slots=True, eq=False)
class SeenObject:
    """One object: how it was built, and what was asked of it from then on."""

    build: Mapping[str, Any]
    given: Mapping[str, Array]
    steps: list[SeenRequest] = field(default_factory=list)
    length: int = 0
    """How many of these steps the sample has."""
    closed: bool = False
    size: int = 0

    def add(self, step: SeenRequest) -> None:
        """Add a step; a long story takes no more."""
        self.steps.append(step)
        self.size += sum(array.nbytes for arrays in (step.given, step.got) for array in arrays.values())
        self.closed = self.size > _MOST_BYTES or len(self.steps) >= _MOST_STEPS


@dataclass(slots=True)
class Witness:
    """Sees each request of a run and its reply, of all workers."""

    seed: int
    left_out: set[str] = field(default_factory=set)
    """What was asked and cannot be repeated, in words."""
    _kept: dict[tuple[Any, ...], list[tuple[SeenObject, int]]] = field(default_factory=dict)
    _seen: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _objects: dict[int, OrderedDict[int, SeenObject]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stories(self, path: str) -> list[SeenObject]:
        """Return the sample of what is built from a path, each story to its last call that was drawn."""
        found: dict[int, SeenObject] = {}
        for kind, drawn in self._kept.items():
            for story, place in drawn if kind[0] == path else ():
                story.length = max(story.length, place + 1)
                found[id(story)] = story
        return list(found.values())

    def saw(self, worker: int, header: Mapping[str, Any], given: Mapping[str, Array], reply: Reply) -> None:
        """Note what was asked and what came back."""
        if header["op"] == "build":
            self._begin(worker, header, given, reply)
        elif (story := self._story(worker, header)) is None or header["op"] in _HARMLESS:
            return
        elif why := unrepeatable(header, reply):
            story.closed = True
            self.left_out.add(why)
        else:
            kept = {name: array for name, array in reply.tensors.items() if not name.startswith("echo:")}
            story.add(SeenRequest(dict(header), _copied(given), _copied(kept)))
            if header["op"] != "write":
                self._draw(story)

    def failed(self, worker: int, header: Mapping[str, Any]) -> None:
        """Tell no more of an object whose call raised."""
        if (story := self._story(worker, header)) is not None:
            story.closed = True

    def _story(self, worker: int, header: Mapping[str, Any]) -> SeenObject | None:
        found = self._objects.get(worker, {}).get(header.get("handle", 0))
        return None if found is None or found.closed else found

    def _begin(self, worker: int, header: Mapping[str, Any], given: Mapping[str, Array], reply: Reply) -> None:
        mine = self._objects.setdefault(worker, OrderedDict())
        mine.pop(reply.header["handle"], None)
        if unbuildable(header, reply):
            self.left_out.add("objects that are made in a way of their own")
            return
        mine[reply.header["handle"]] = SeenObject(dict(header), _copied(given))
        while len(mine) > _WAITING:
            mine.popitem(last=False)

    def _draw(self, story: SeenObject) -> None:
        """Keep this call in place of another one of its kind, so that each has the same chance."""
        kind, place = _kind(story), len(story.steps) - 1
        with self._lock:
            seen, kept = self._seen.get(kind, 0), self._kept.setdefault(kind, [])
            self._seen[kind] = seen + 1
            drawn = random.Random(f"{self.seed} {kind} {seen}").randrange(seen + 1)  # noqa: S311 - a sample
            if len(kept) < _OF_A_KIND:
                kept.append((story, place))
            elif drawn < _OF_A_KIND:
                kept[drawn] = (story, place)


def _copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _kind(story: SeenObject) -> tuple[Any, ...]:
    """Return what tells kinds of calls apart: modes, methods, options, and arrays by their axes and formats."""
    header, given = story.steps[-1].header, story.steps[-1].given
    forms = sorted((name, array.dtype.str, array.ndim) for name, array in given.items())
    options = sorted(name for name, value in header["kwargs"].items() if value is not None)
    places = [place for place, value in enumerate(header["args"]) if value is not None]
    facts = (header.get(name) for name in ("op", "mode", "method", "function", "record"))
    return (story.build["path"], *facts, str(forms), str(options), str(places))


def unbuildable(header: Mapping[str, Any], reply: Reply) -> bool:
    """Whether a program of its own cannot build what was built."""
    odd = any(header.get(key) for key in ("parameters", "globals", "head", "marked"))
    return odd or bool(reply.header["lazy"]) or not _is_plain(header)


def unrepeatable(header: Mapping[str, Any], reply: Reply) -> str:
    """Return the word for what a program of its own cannot do in a request; nothing if it can do all."""
    op = str(header["op"])
    if op not in {"call", "vjp", "write"}:
        return _WORDS.get(op, "what looks into a call")
    if odd := [name for name in _ODD if header.get(name)]:
        return _WORDS.get(odd[0], "what looks into a call")
    arguments = {key: header.get(key) for key in ("args", "kwargs")}
    return (
        ""
        if op == "write" or (_is_plain(arguments) and "out" in reply.tensors)
        else "views and containers as arguments"
    )


def _is_plain(template: Any) -> bool:
    """Whether a plain program can fill a template of arguments."""
    if isinstance(template, Mapping):
        if {key for key in template if key.startswith("$")} - _KNOWN or {"then", "by_class"} & {*template}:
            return False
        return not template.get("strided") and all(map(_is_plain, template.values()))
    return all(map(_is_plain, template)) if isinstance(template, list | tuple) else True
