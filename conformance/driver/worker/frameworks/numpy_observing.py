"""NumPy: what the objects beneath a component return when called, and what is computed from its arrays.

There are no hooks here. For one call, the arrays of the component are replaced by views that note what operations give,
and the classes of the objects that hold them get methods that note what they return.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.worker.frameworks.walk import Slot
from conformkit.conformance.driver.worker.observing import Notes

__all__ = ["observed"]

_ACTIVATIONS = {"maximum", "where", "multiply", "clip"}
_CALLS = ("__call__", "forward")


@contextmanager
def observed(objects: Mapping[str, Any], arrays: Sequence[tuple[Slot, Array]], notes: Notes) -> Iterator[None]:
    """Note what these objects return, by name, and what is computed from these arrays."""
    seen = _view_class(notes)
    names = {id(item): name for name, item in reversed(list(objects.items()))}
    with ExitStack() as closing:
        for slot, array in arrays:
            closing.callback(slot.set, array)
            slot.set(array.view(seen))
        for kind in {type(item) for item in objects.values()}:
            for name in _CALLS:
                method = kind.__dict__.get(name)
                if isinstance(method, FunctionType):
                    closing.callback(setattr, kind, name, method)
                    setattr(kind, name, _noting(method, names, notes))
        yield


def _noting(method: Any, names: Mapping[int, str], notes: Notes) -> Any:
    """Return a method that does the same and notes what comes out."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = names.get(id(self))
        if name is None or notes.inside[-1:] == [name]:  # `__call__` that calls `forward`
            return method(self, *args, **kwargs)
        with notes.entered(name):
            output = method(self, *args, **kwargs)
        first = output[0] if isinstance(output, tuple) and output else output
        if isinstance(first, np.ndarray) and first.dtype.kind == "f":
            notes.part(name, type(self).__name__, first.view(np.ndarray))
        return output

    return call


def _view_class(notes: Notes) -> type[np.ndarray[Any, Any]]:
    """Return a class of arrays that note what operations on them give."""

    class ObservedArray(np.ndarray[Any, Any]):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
            if out is not None:
                options["out"] = tuple(map(_bare, out))
            result = getattr(ufunc, method)(*map(_bare, inputs), **options)
            return _noted(result, ufunc.__name__ if method == "__call__" else "")

        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return _noted(super().__array_function__(func, types, args, kwargs), func.__name__)

    def _noted(result: Any, name: str) -> Any:
        if not isinstance(result, np.ndarray) or result.dtype.kind != "f":
            return result
        bare = result.view(np.ndarray)
        notes.value(bare)
        if name in _ACTIVATIONS:
            notes.activation(bare)
        return bare.view(ObservedArray)

    return ObservedArray


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value
