"""Stubs: functions that always end in `raise NotImplementedError`.

Recognized from the byte code, without a call: no jump, no return, no handler. A function that raises for some inputs
only has a jump; it counts as an implementation that fails.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

__all__ = ["code_of", "stubs"]

_OTHER_ENDS = ("RETURN", "YIELD", "POP_JUMP", "JUMP", "FOR_ITER", "SEND")
"""Prefixes of instructions that return, or that branch."""


_CONTEXTS = ("contextlib.py", "grad_mode.py")
"""Files of the decorators that enter a context: Python's and torch's."""


def stubs(methods: dict[str, Any], place: Callable[[str], str | None]) -> dict[str, str]:
    """Return the methods that are stubs, with the line that raises, `mypkg/attention.py:31 in forward`."""
    found = {name: _raising(value, place) for name, value in methods.items()}
    return {name: where for name, where in found.items() if where}


def _raising(value: Any, place: Callable[[str], str | None]) -> str:
    code = code_of(value)
    if code is None or "NotImplementedError" not in code.co_names or code.co_exceptiontable:
        return ""
    steps = list(dis.get_instructions(code))
    if not steps[-1].opname.startswith("RAISE_VARARGS") or any(s.opname.startswith(_OTHER_ENDS) for s in steps):
        return ""
    file = place(code.co_filename)
    return f"{file or code.co_filename}:{_line(code)} in {code.co_name}"


def code_of(value: Any) -> CodeType | None:
    """Return the code of a function, inside decorators that only enter a context, as `torch.no_grad()` does.

    Other decorators may never call what they decorate: a dispatcher's first function is often a stub.
    """
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    try:
        code = value.__code__
        while code.co_filename.endswith(_CONTEXTS):
            value = value.__wrapped__
            code = value.__code__
    except Exception:  # noqa: BLE001 - attributes of foreign objects may do anything
        return None
    return code if isinstance(code, CodeType) else None


def _line(code: CodeType) -> int:
    """Return the line of the last instruction, as a traceback would."""
    return next((line for _, _, line in reversed(list(code.co_lines())) if line), code.co_firstlineno)
