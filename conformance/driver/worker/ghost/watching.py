"""What a call does on the device: where a stray tensor comes from, and where values are read back.

A tensor of the CPU that meets those of the device was made in the call, or made on a device that the code names, or it
was there before and stayed behind when the object was moved. Which of these, and in which line, is what a reader wants
to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from conformkit.conformance.driver.worker.frames_of import Place, place_of_caller
from conformkit.conformance.driver.worker.frameworks.base import UnsupportedError
from conformkit.conformance.driver.worker.ghost import tensor
from conformkit.conformance.driver.worker.ghost.rules import MixedDevices
from conformkit.conformance.driver.worker.ghost.tensor import GhostTensor, tensors_in

__all__ = ["DeviceWritten", "Kept", "LeftBehind", "MadeElsewhere", "devices_watched"]

_MAX_READS = 50
_ABSENT = ("not compiled with CUDA", "No CUDA GPUs", "NVIDIA driver", "not linked with support for", "HIP GPUs")
"""What torch says where a device is asked for that is not there."""


class MadeElsewhere(RuntimeError):
    """A tensor that the call made on the CPU met one of the device."""


class DeviceWritten(RuntimeError):
    """The code names the device of a tensor, and it is another one."""


class LeftBehind(RuntimeError):
    """A tensor that the object kept did not move with it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What an object that is called keeps; asked for when devices were mixed."""

    strays: Callable[[], Collection[int]]
    """The addresses of its tensors on the CPU."""
    takes_device: Callable[[], bool]
    """Whether its constructor was told a device, on which its calls may rely."""
    reads_device: Callable[[], bool]
    """Whether its constructor reads that device: what it keeps was made there."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """How a tensor of the CPU came to be: the operation, and the line of the implementation."""

    error: type[RuntimeError]
    told: str
    value: torch.Tensor
    """Keeps its memory from being used again."""
    certain: bool = True
    """Whether a device that was named is written in the code, and not taken from another tensor."""


@contextmanager
def devices_watched(kept: Kept, place: Place) -> Iterator[Callable[[Any], list[str]]]:
    """Watch a call; yield what tells where its result is, and in which lines values were read back to the host.

    Raises MadeElsewhere, DeviceWritten or LeftBehind where devices are mixed, with the line that made the stray tensor;
    UnsupportedError where the constructor was told the device that the code names, or on which it kept something.
    """
    watch = _Devices(kept, place)
    tensor.listening.append(watch.hear)
    try:
        with watch:
            yield watch.told
    except MixedDevices as mixed:
        error = watch.explained(mixed)
        for_cpu = isinstance(error, LeftBehind) and kept.reads_device()
        if kept.takes_device() and (for_cpu or isinstance(error, DeviceWritten)):
            message = f"it was constructed for the cpu: {error}"
            raise UnsupportedError(message) from None
        raise error.with_traceback(mixed.__traceback__) from None
    except (RuntimeError, AssertionError) as error:
        if not any(words in str(error) for words in _ABSENT):
            raise
        message = f"a device is named that is not there: {error}"
        raise DeviceWritten(message).with_traceback(error.__traceback__) from None
    finally:
        tensor.listening.remove(watch.hear)


class _Devices(TorchFunctionMode):
    """Sees the calls of torch's functions as they are written, and what they give."""

    def __init__(self, kept: Kept, place: Place) -> None:
        super().__init__()
        self._kept, self._place = kept, place
        self._origins: dict[int, _Origin] = {}
        self._reads: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call it, and note how results on the CPU came to be."""
        del types
        out = func(*args, **(kwargs or {}))
        for item in out if isinstance(out, tuple | list) else (out,):
            if isinstance(item, torch.Tensor) and not isinstance(item, GhostTensor) and item.device.type == "cpu":
                self._made(func, args, kwargs or {}, item)
        return out

    def told(self, value: Any) -> list[str]:
        """Return the device of a result, and where values were read back."""
        return [str(value.device) if isinstance(value, torch.Tensor) else "", *self._reads]

    def hear(self, what: str, func: Any, _: Any) -> None:
        """Note where values are read back."""
        if what == "reads" and len(self._reads) < _MAX_READS:
            self._reads.append(f"by `{_name(func)}`, `{place_of_caller(self._place)}`")

    def explained(self, mixed: MixedDevices) -> RuntimeError:
        """Return the error that says where the stray tensor comes from."""
        origin = self._origin(mixed.stray)
        error = origin.error if origin.certain or not self._strays else LeftBehind
        shape = tuple(mixed.stray.shape)
        return error(f"a tensor of shape {shape} was {origin.told}; it meets {tensor.HERE} in `{mixed.operation}`")

    @cached_property
    def _strays(self) -> Collection[int]:
        return self._kept.strays()

    def _made(self, func: Any, args: Any, kwargs: Any, value: torch.Tensor) -> None:
        """Note how a tensor of the CPU was made; what is computed from a kept one counts as kept."""
        inputs = tensors_in(args, kwargs)
        if any(item is value for item in inputs):  # `to` gives the tensor itself where nothing is to be done
            return
        named = _named(func, args, kwargs)
        sentence = f"by `{_name(func)}`, `{place_of_caller(self._place)}`"
        sentence += f", which names a device, `{named}`" if named else ""
        certain = not named or named.startswith("'")
        if any(isinstance(item, GhostTensor) for item in inputs):
            self._origins[_address(value)] = _Origin(DeviceWritten, f"moved to the cpu {sentence}", value, certain)
            return
        origins = [self._origin(item) for item in inputs if item.dim()]
        if origins:
            first = min(origins, key=lambda one: one.error is not LeftBehind)
            self._origins.setdefault(_address(value), replace(first, value=value))
            return
        error = DeviceWritten if named else MadeElsewhere
        self._origins[_address(value)] = _Origin(error, f"made on the cpu {sentence}", value, certain)

    def _origin(self, value: torch.Tensor) -> _Origin:
        known = self._origins.get(_address(value))
        if known is not None:
            return known
        if _address(value) in self._strays:
            return _Origin(LeftBehind, "kept by the object, and did not move with it", value)
        return _Origin(MadeElsewhere, "made on the cpu without torch, or is kept outside the object", value)


def _named(func: Any, args: Any, kwargs: Any) -> str:
    """Return the device other than ours that a call names, quoted if it is written as a text; or nothing."""
    name = getattr(func, "__name__", "")
    if name in {"cpu", "cuda"} and args and isinstance(args[0], torch.Tensor):
        return f"'{name}'"
    for item in (kwargs.get("device"), *(args[1:2] if name == "to" else ())):
        if isinstance(item, str | torch.device) and not tensor.is_here(item):
            return repr(item) if isinstance(item, str) else str(item)
    return ""


def _address(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr() if value.layout is torch.strided else id(value)


def _name(func: Any) -> str:
    """Return the name of an operation, or of one of torch's functions."""
    if isinstance(func, str):
        return func
    packet = getattr(func, "overloadpacket", func)
    return str(getattr(packet, "__name__", packet)).strip("_")
