"""By which convention a tool is called and answers, where code has several: the one with which it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.values import of_numbers
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.tool import Tool

__all__ = ["MASK_KINDS", "alike", "first_of_several", "settled"]

_T = TypeVar("_T")
MASK_KINDS = (np.int64, np.bool_, np.float32)
"""The kinds of numbers that a mask may have to have."""


def first_of_several(tool: Tool, ask: Callable[[], Any], shapes: Sequence[Any]) -> Tool:
    """Return the tool; where it returns several values of which the first has such a shape, one that reads that."""
    try:
        value = ask()
    except (ImplementationFailure, ClauseFailure):
        return tool
    if not isinstance(value, list) or len(value) < 2 or not of_numbers(value) or _shaped(value, shapes):
        return tool
    if not _shaped(value[0], shapes):
        return tool
    calls = {name: replace(call, output=0) for name, call in tool.bound.calls.items()}
    first = tool.like(tool.link)
    first.bound = replace(tool.bound, calls=calls)
    return first


def _shaped(value: Any, shapes: Sequence[Any]) -> bool:
    try:
        return np.shape(value) in {np.shape(shape) for shape in shapes}
    except ValueError:  # of unequal lengths
        return False


def settled(ask: Callable[[_T], Any], forms: Sequence[_T], wanted: Sequence[Any]) -> tuple[_T, Any]:
    """Return the first form of an argument that gives what is wanted, or else that is taken, and the result."""
    refused: ImplementationFailure | None = None
    taken: list[tuple[_T, Any]] = []
    for form in forms:
        try:
            taken.append((form, ask(form)))
        except ImplementationFailure as failure:
            refused = refused or failure
            continue
        if any(alike(taken[-1][1], want) for want in wanted):
            return taken[-1]
    if not taken:
        assert refused is not None
        raise refused
    return taken[0]


def alike(value: Any, want: Any) -> bool:
    """Whether a result is numbers of that shape, the same to three digits."""
    found, wished = np.asarray(value), np.asarray(want)
    return found.dtype.kind in "if" and found.shape == wished.shape and bool(np.allclose(found, wished, rtol=1e-3))
