"""Live objects as an implementation: what a notebook has just defined, judged in its own process."""

from __future__ import annotations

import difflib
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from itertools import count
from typing import Any

from conformkit.spec.clauses import select
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES, components_of
from conformkit.spec.tools import TOOLS

__all__ = ["as_argument", "judged", "module_of"]

_NUMBERS = count(1)


@contextmanager
def module_of(live: object) -> Iterator[str]:
    """Make classes and functions importable under a module's name in this context.

    `live` is one of them, under the contract's name, or a mapping from the contract's names. Raises ValueError.
    """
    members = _members(live)
    module = types.ModuleType(f"conform_live_{next(_NUMBERS)}")
    module.__spec__ = ModuleSpec(module.__name__, None)
    for value in members.values():  # what a function uses shows the framework
        vars(module).update(_libraries(value))
    vars(module).update(members)
    sys.modules[module.__name__] = module
    try:
        yield module.__name__
    finally:
        del sys.modules[module.__name__]


def judged(live: object, profile: str) -> tuple[str, ...]:
    """Return which clauses are about these objects: their own, and those about whatever there is.

    Raises ValueError for a name that the contract does not have.
    """
    names = _members(live)
    wanted = {name for name, part in components_of(profile).items() if {part.export, *part.further} & names.keys()}
    wanted |= names.keys() | {"all"}
    return tuple(item.id for item in select((), profile) if item.component in wanted)


def as_argument(live: object) -> str:
    """Return how the objects are written in a call of `check`: `MyAttention`, or a mapping with a name for each."""
    members = _members(live)
    names = {name: str(getattr(value, "__name__", name)) for name, value in members.items()}
    if not isinstance(live, Mapping) and list(names) == list(names.values()):
        return next(iter(names))
    return f"{{{', '.join(f'{chr(34)}{name}{chr(34)}: {value}' for name, value in names.items())}}}"


def _libraries(value: object) -> dict[str, types.ModuleType]:
    named: dict[str, Any] = getattr(value, "__globals__", {})
    return {name: item for name, item in named.items() if isinstance(item, types.ModuleType)}


def _members(live: object) -> Mapping[str, Any]:
    members = dict(live) if isinstance(live, Mapping) else {str(getattr(live, "__name__", type(live).__name__)): live}
    known = [component.export for component in COMPONENTS.values()] + [*SEVERAL_NAMES, *TOOLS]
    strange = [str(name) for name in members if name not in known]
    if strange or not members:
        name = strange[0] if strange else ""
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.3) or ["MultiHeadAttention"]
        raise ValueError(
            f"{name or 'nothing'} is not a name of the contract; say which one it is: check({{{near[0]!r}: …}})"
        )
    return members
