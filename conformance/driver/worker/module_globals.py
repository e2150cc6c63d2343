"""Numbers at the top of a file that its code reads: set for as long as one object is built or called."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from conformkit.conformance.driver.worker.frameworks.base import RequestError

__all__ = ["set_globals"]


def set_globals(module: str, values: Mapping[str, Any]) -> None:
    """Set globals of a module by name, and those of its package that have the same name: they were imported from there.

    `cfg.n_embd` is an attribute, or an item of a dictionary. Raises RequestError if there is none of that name.
    """
    for dotted, value in values.items():
        name, _, inner = dotted.partition(".")
        places = [place for place in _package(module) if name in vars(place)]
        if not places:
            message = f"{module} has no global {name}"
            raise RequestError(message)
        for place in places:
            _set(place if not inner else vars(place)[name], inner or name, value)


def _package(module: str) -> Iterator[types.ModuleType]:
    """Yield a module, and those of its package that are imported."""
    top = module.partition(".")[0]
    for name, found in list(sys.modules.items()):
        if name.partition(".")[0] == top and isinstance(found, types.ModuleType):
            yield found


def _set(place: Any, name: str, value: Any) -> None:
    if isinstance(place, MutableMapping):
        if name not in place:
            message = f"a dictionary has no key {name}"
            raise RequestError(message)
        place[name] = value
    elif not hasattr(place, name):
        message = f"{type(place).__name__} has no attribute {name}"
        raise RequestError(message)
    elif isinstance(place, type):
        setattr(place, name, value)
    else:
        vars(place)[name] = value  # a frozen dataclass refuses assignments
