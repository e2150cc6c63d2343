"""Encoder-decoders without a call of their own: scripts call `encode`, give its result to `decode`, and go on.

A program of its own (programs.py) gets the text of this file, so it imports nothing of the kit.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["join_halves", "of_library", "own", "ready"]

_LIBRARIES = ("torch", "builtins", "abc", "typing", "numpy", "collections", "array")

_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
_MEMORY = re.compile(r"mem|enc|context|hidden|states", re.IGNORECASE)
"""In names of the argument that gets what was encoded."""
_MIN_TAKEN = 2
"""What such a `decode` requires at least, the encoded source and the target: one of a tokenizer takes ids alone."""


def ready(made: Any) -> Any:
    """Return an object that can be called: a model whose class only has two halves gets a call that is both."""
    join_halves(type(made))
    return made


def join_halves(owner: type) -> str:
    """Give a class with the halves `encode` and `decode`, and no call, a `forward` that is one after the other.

    Return which argument of `decode` gets what `encode` returns; nothing of any other class, which stays as it is.
    """
    call = next(filter(None, (own(owner, name) for name in ("forward", "__call__"))), None)
    if call is not None:
        return str(getattr(call, "memory", ""))
    encode, decode = (_parameters(own(owner, name)) for name in ("encode", "decode"))
    memory = _memory(encode, decode)
    if memory:
        owner.forward = _both(encode, decode, memory)  # type: ignore[attr-defined]
    return memory


def own(owner: type, name: str) -> Any:
    """Return what a class of the implementation (not a library's base class) defines under a name."""
    for base in owner.__mro__:
        if name in vars(base):
            return vars(base)[name] if not of_library(base) or base is owner else None
    return None


def of_library(owner: type) -> bool:
    """Whether a class comes with Python or a framework."""
    return owner.__module__.split(".", 1)[0] in _LIBRARIES


def _parameters(half: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a method, by name; none of what is no method, or takes more than it names."""
    if not inspect.isfunction(half):
        return {}
    _, *taken = inspect.signature(half).parameters.values()
    return {p.name: p for p in taken} if all(p.kind is _NAMED for p in taken) else {}


def _memory(encode: Mapping[str, inspect.Parameter], decode: Mapping[str, inspect.Parameter]) -> str:
    """Return the argument of `decode` that gets what `encode` returns; nothing if they are no halves of one model."""
    required = [name for name, p in decode.items() if p.default is p.empty]
    if not encode or len(required) < _MIN_TAKEN:
        return ""
    left = [name for name in required if name not in encode and "mask" not in name.lower()]
    return next(filter(_MEMORY.search, left), left[0] if len(left) >= _MIN_TAKEN else "")


def _both(
    encode: Mapping[str, inspect.Parameter], decode: Mapping[str, inspect.Parameter], memory: str
) -> Callable[..., Any]:
    """Return a call that takes what both take, but the memory: ids first, then masks, as other models do."""
    taken = {**encode, **{name: p for name, p in decode.items() if name not in encode and name != memory}}
    order = sorted(taken.values(), key=lambda p: (p.default is not p.empty, "mask" in p.name.lower()))
    signature = inspect.Signature([inspect.Parameter("self", _NAMED), *order])

    def forward(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        model = given.pop("self")
        encoded = model.encode(**{name: value for name, value in given.items() if name in encode})
        return model.decode(**{memory: encoded}, **{name: value for name, value in given.items() if name in decode})

    forward.__signature__ = signature  # type: ignore[attr-defined]
    forward.memory = memory  # type: ignore[attr-defined]
    return forward
