"""PyTorch: every operation that a call carries out, also those inside torch's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.worker.frameworks.base import HeldArray
from conformkit.conformance.driver.worker.steps import CallSteps

__all__ = ["followed"]

_Key = tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype]


@contextmanager
def followed(
    modules: Mapping[str, nn.Module], held: Iterable[HeldArray], inputs: Mapping[str, Tensor], steps: CallSteps
) -> Iterator[Callable[[Any], int | None]]:
    """In this context, note what operations give; the callable finds the place of a result in the record."""
    names = {id(module): name for name, module in reversed(list(modules.items()))}
    parts: list[str] = []

    def before(module: nn.Module, _: Any) -> None:
        parts.append(names.get(id(module), parts[-1] if parts else ""))

    def after(*_: Any) -> None:
        if parts:
            parts.pop()

    recorder = _OperationRecorder(steps, parts)
    for item in held:
        if isinstance(item.value, Tensor) and not item.lazy:
            recorder.leaf(item.value, "parameter" if item.trainable else "buffer", item.alias or item.name)
    for name, tensor in inputs.items():
        recorder.leaf(tensor, "input", name)
    with ExitStack() as closing:
        for handle in (register_module_forward_pre_hook(before), register_module_forward_hook(after, always_call=True)):
            closing.callback(handle.remove)
        closing.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)  # one operation for a whole layer would say nothing
        with recorder:
            yield recorder.place


class _OperationRecorder(TorchDispatchMode):
    """Notes each tensor that an operation gives. Tensors are kept alive, so that no address is used twice."""

    def __init__(self, steps: CallSteps, parts: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps, self._parts = steps, parts
        self._kept: list[Tensor] = []
        self._known: dict[_Key, tuple[int, Array]] = {}
        self._writers: dict[int, list[int]] = {}
        """By address of memory, the operations that wrote into it in place."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry it out, and note what it was given and what it gives."""
        del types
        everything = [*_flat(args), *_flat((kwargs or {}).values())]
        with torch.no_grad():
            given = [self.leaf(item) for item in everything if isinstance(item, Tensor)]
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        scalars = [item for item in everything if not isinstance(item, Tensor)]
        with torch.no_grad():
            for tensor in _flat([out]):
                if isinstance(tensor, Tensor):
                    self._note(tensor, name, [place for place in given if place is not None], scalars)
        return out

    def place(self, value: Any) -> int | None:
        """Return the place of a tensor in the record; None if it is not there, or was changed since."""
        known = self._known.get(_key(value)) if isinstance(value, Tensor) and not self._steps.cut else None
        return known[0] if known is not None else None

    def leaf(self, tensor: Tensor, operation: str = "constant", name: str = "") -> int | None:
        """Return the place of a tensor, which is noted if it is new, or was written to through another view."""
        if self._steps.cut or tensor.layout is not torch.strided:
            return None
        known, array = self._known.get(_key(tensor)), _array(tensor)
        if known is None:
            return self._add(tensor, array, operation, [], name=name)
        if np.array_equal(known[1], array, equal_nan=True):
            return known[0]
        return self._add(tensor, array, "written", [known[0], *self._writers.get(_memory(tensor), [])])

    def _note(self, tensor: Tensor, operation: str, given: list[int], scalars: list[Any]) -> None:
        if self._steps.cut or tensor.layout is not torch.strided:
            return
        own = operation.rstrip("_") if operation.endswith("_") and not operation.startswith("_") else operation
        place = self._add(tensor, _array(tensor), own, given, scalars=scalars)
        if operation.endswith("_") and place is not None:
            self._writers.setdefault(_memory(tensor), []).append(place)

    def _add(self, tensor: Tensor, array: Array, operation: str, given: list[int], **facts: Any) -> int | None:
        part = self._parts[-1] if self._parts else ""
        place = self._steps.add(operation, given, array, part=part, **facts)
        if place is not None:
            self._kept.append(tensor)
            self._known[_key(tensor)] = place, array
        return place


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value


def _key(tensor: Tensor) -> _Key:
    return tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _array(tensor: Tensor) -> Array:
    """Return the numbers of a tensor; complex ones as pairs on a further axis."""
    bare = tensor.detach().resolve_conj().resolve_neg()
    bare = torch.view_as_real(bare) if bare.is_complex() else bare
    return bare.to(torch.float64).numpy().copy()
