"""Numbers at the top of a file that its code reads: set for as long as one object is built or called."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from conformkit.conformance.driver.worker.frameworks.base import RequestError

__all__ = ["device_named", "globals_set"]


@contextmanager
def globals_set(module: str, values: Mapping[str, Any]) -> Iterator[None]:
    """Set globals of a module by name, and those of its package that have the same name: they were imported from there.

    `cfg.n_embd` is an attribute, or an item of a dictionary. Afterwards they are as they were: what is built next may
    read the author's numbers. Raises RequestError if there is none of that name.
    """
    before: list[tuple[Any, str, Any]] = []
    try:
        before.extend(_changed(module, values))
        yield
    finally:
        for place, name, value in reversed(before):
            _set(place, name, value)


def device_named(module: str, device: str) -> dict[str, Any]:
    """Return the global of a module that names the author's device, with this one in its place; nothing if none does.

    Where sizes are numbers at the top of a file, so is the device: who runs the file elsewhere changes it there.
    """
    found = vars(sys.modules[module]) if module in sys.modules else {}
    named = {name: value for name, value in found.items() if name.lower() == "device"}
    return {name: type(value)(device) for name, value in named.items() if _names_a_device(value)}


def _names_a_device(value: Any) -> bool:
    return isinstance(value, str) or type(value).__name__ == "device"


def _changed(module: str, values: Mapping[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Set globals; yield where each is, its name there, and the value that it had."""
    for dotted, value in values.items():
        name, _, inner = dotted.partition(".")
        places = [place for place in _package(module) if name in vars(place)]
        if not places:
            message = f"{module} has no global {name}"
            raise RequestError(message)
        for place in places:
            holder, key = (vars(place)[name], inner) if inner else (place, name)
            before = _set(holder, key, value)
            yield holder, key, before


def _package(module: str) -> Iterator[types.ModuleType]:
    """Yield a module, and those of its package that are imported."""
    top = module.partition(".")[0]
    for name, found in list(sys.modules.items()):
        if name.partition(".")[0] == top and isinstance(found, types.ModuleType):
            yield found


def _set(place: Any, name: str, value: Any) -> Any:
    """Set an item or an attribute; return the value that it had."""
    if isinstance(place, MutableMapping):
        if name not in place:
            message = f"a dictionary has no key {name}"
            raise RequestError(message)
        before, place[name] = place[name], value
        return before
    if not hasattr(place, name):
        message = f"{type(place).__name__} has no attribute {name}"
        raise RequestError(message)
    before = getattr(place, name)
    if isinstance(place, type):
        setattr(place, name, value)
    else:
        vars(place)[name] = value  # a frozen dataclass refuses assignments
    return before
