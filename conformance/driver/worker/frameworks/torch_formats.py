"""PyTorch: the number formats of results inside a call in half precision, and what makes them wider.

A wide result is on purpose where the code converts: `x.float()` and everything computed from it. It is an accident
where a wide constant, a table or a mask, meets a narrow tensor, and the sum takes the wider format. An accident that is
converted back where it happened harms nobody; one that reaches another function, an operation that refuses two formats,
or the result does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from conformkit.conformance.driver.worker.frames_of import Place, place_of_caller

__all__ = ["FormatLifted", "formats_watched"]

_NARROW = (torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64)
_MAX_SPREADS = 20
_REFUSALS = ("dtype", "scalar type", "same type")


class FormatLifted(RuntimeError):
    """An operation refused two number formats, one of which comes from a wide constant."""


@dataclass(frozen=True, slots=True)
class _Wide:
    """How a wide tensor came to be."""

    how: Literal["constant", "meant", "lifted"]
    told: str
    function: str
    value: Tensor
    """Keeps its memory from being used again."""


@contextmanager
def formats_watched(place: Place) -> Iterator[Callable[[Any], list[str]]]:
    """Watch a call in half precision; yield what tells which results became wider by accident and stayed so.

    Raises FormatLifted in place of what torch raises over two formats.
    """
    watch = _Formats(place)
    try:
        with watch:
            yield watch.told
    except (RuntimeError, ValueError) as error:
        blame = watch.refused or watch.any_lifted()
        if blame and any(words in str(error) for words in _REFUSALS):
            raise FormatLifted(f"{blame}; then an operation refuses both formats").with_traceback(
                error.__traceback__
            ) from None
        raise


class _Formats(TorchFunctionMode):
    """Sees the format of the result of each of torch's functions."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._wide: dict[int, _Wide] = {}
        self.spread: list[str] = []
        """Where a lifted tensor has lifted another one, in another function."""
        self.refused = ""
        """The constant behind the last operation that raised."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry it out, and note how wide results came to be."""
        del types
        inputs = [item for item in _tensors((*args, *(kwargs or {}).values())) if item.dim()]
        narrow = any(item.dtype in _NARROW for item in inputs)
        wide = [self._known(item) for item in inputs if item.dtype in _WIDE]
        try:
            out = func(*args, **(kwargs or {}))
        except RuntimeError:
            blame = [one for one in wide if one.how != "meant"]
            self.refused = blame[0].told if narrow and blame else ""
            raise
        for item in _tensors((out,)):
            if item.dtype in _WIDE and item.dim():
                self._note(func, narrow=narrow, wide=wide, out=item)
        return out

    def told(self, value: Any) -> list[str]:
        """Return what was lifted by accident and went on to another function, or was returned as `value`."""
        known = self._wide.get(_address(value)) if isinstance(value, Tensor) and value.dtype in _WIDE else None
        returned = [f"{known.told}, and the result is returned"] if known is not None and known.how == "lifted" else []
        return [*self.spread, *returned]

    def any_lifted(self) -> str:
        """Return how some result was lifted by accident, or nothing."""
        return next((one.told for one in self._wide.values() if one.how == "lifted"), "")

    def _note(self, func: Any, *, narrow: bool, wide: list[_Wide], out: Tensor) -> None:
        here, function = self._here(func)
        how: Literal["constant", "meant", "lifted"] = "constant"
        told = f"made by {here}"
        lifting = next((one for one in wide if one.how == "lifted"), None)
        if lifting is not None:
            how, told, origin = "lifted", lifting.told, lifting.function
            if narrow and function != origin and len(self.spread) < _MAX_SPREADS:
                self.spread.append(f"{lifting.told}, and the result goes on to {here}")
            function = origin
        elif any(one.how == "meant" for one in wide) or (narrow and not wide):
            how, told = "meant", ""
        elif narrow:
            how, told = "lifted", f"a wide tensor, {wide[0].told}, meets a narrow one in {here}"
        elif wide:
            told, function = wide[0].told, wide[0].function
        self._wide[_address(out)] = _Wide(how, told, function, out)

    def _known(self, value: Tensor) -> _Wide:
        return self._wide.get(_address(value)) or _Wide("constant", "kept in that format", "", value)

    def _here(self, func: Any) -> tuple[str, str]:
        """Return the operation with its line, and its function."""
        line = place_of_caller(self._place)
        file, _, function = line.rpartition(" in ")
        name = str(getattr(func, "__name__", func)).strip("_")
        return f"`{name}`, `{line}`", f"{file.rpartition(':')[0]} {function}"


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among these, and in tuples and lists among them."""
    found: list[Tensor] = []
    for item in values:
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, tuple | list):
            found += [one for one in item if isinstance(one, Tensor)]
    return found


def _address(value: Tensor) -> int:
    value = getattr(value, "ghost_values", value)
    return value.untyped_storage().data_ptr() if value.layout is torch.strided else id(value)
