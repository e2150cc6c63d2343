"""Names that a function takes inside its `**kwargs`, which its signature does not tell.

Read from the byte code, without a call: `kwargs["name"]`, `kwargs.get("name")`, `kwargs.pop("name")`, and
`"name" in kwargs`.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

from conformkit.conformance.driver.worker.stubs import code_of

__all__ = ["inside"]

_MAX_NAMES = 50
_INSTRUCTIONS_BETWEEN = 2
"""So many instructions stand between `kwargs` and a name that is looked up in it, at most."""


def inside(methods: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names that each of these functions looks up in its `**kwargs`, where there are any."""
    found = {name: list(dict.fromkeys(_looked_up(code_of(value))))[:_MAX_NAMES] for name, value in methods.items()}
    return {name: names for name, names in found.items() if names}


def _looked_up(code: CodeType | None) -> Iterator[str]:
    if code is None or not code.co_flags & inspect.CO_VARKEYWORDS:
        return
    place = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    kwargs = code.co_varnames[place]
    steps = [step for step in dis.get_instructions(code) if step.opname not in {"PUSH_NULL", "CACHE"}]
    for i, step in enumerate(steps):
        if step.opname == "LOAD_CONST" and isinstance(step.argval, str) and step.argval.isidentifier():
            before, after = steps[max(0, i - _INSTRUCTIONS_BETWEEN) : i], steps[i + 1 : i + 3]
            looked_in = any(_loads(kwargs, other) for other in before[-1:])
            asked = (
                len(before) == _INSTRUCTIONS_BETWEEN
                and _loads(kwargs, before[0])
                and before[1].argval in {"get", "pop"}
            )
            is_in = len(after) == 2 and _loads(kwargs, after[0]) and after[1].opname == "CONTAINS_OP"
            if (looked_in and _subscribes(after)) or asked or is_in:
                yield step.argval


def _loads(name: str, step: dis.Instruction) -> bool:
    """Whether it loads this variable, alone or as the last of two."""
    loaded = step.argval[-1:] if isinstance(step.argval, tuple) else (step.argval,)
    return step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST" and loaded == (name,)


def _subscribes(after: list[dis.Instruction]) -> bool:
    return bool(after) and (after[0].opname, after[0].argrepr) in {("BINARY_SUBSCR", ""), ("BINARY_OP", "[]")}
