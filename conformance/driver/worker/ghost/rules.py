"""What CUDA refuses: which operations take tensors of another device, and in which words they raise.

A tensor without dimensions on the CPU is a number to most operations on a GPU; indices may be on the CPU; copies go
anywhere. Everything else raises, and so does a vector on the CPU with a number of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

__all__ = ["READS_BACK", "MixedDevices", "check_devices", "check_generator", "no_numpy", "own_generators"]

aten = torch.ops.aten
own_generators: list[torch.Generator] = []
"""Those that were made for the device."""
INDEXING = frozenset(
    {
        aten.index.Tensor,
        aten.index_put.default,
        aten.index_put_.default,
        aten._index_put_impl_.default,
        aten._unsafe_index.Tensor,  # noqa: SLF001
    }
)
READS_BACK = frozenset(
    {
        aten._local_scalar_dense.default,  # noqa: SLF001
        aten.nonzero.default,
        aten.masked_select.default,
        aten.equal.default,
        aten._unique2.default,  # noqa: SLF001
        aten.unique_consecutive.default,
        aten.unique_dim.default,
        aten.is_nonzero.default,
        aten.allclose.default,
    }
)
"""Operations after which the host waits for the device: their result, or its shape, depends on values."""
_NAMES_OF_NUMBERS = ("cat", "stack", "mm", "bmm", "addmm", "baddbmm", "embedding", "gather", "index_select")
"""Operations to which a tensor without dimensions is no number."""


class MixedDevices(RuntimeError):
    """Tensors of two devices met. `stray` is the one that is not on the device, `operation` where they met."""

    def __init__(self, message: str, stray: torch.Tensor, operation: str) -> None:
        super().__init__(message)
        self.stray, self.operation = stray, operation


def check_devices(func: Any, args: Sequence[Any], strays: Sequence[torch.Tensor], own: str) -> None:
    """Raise MixedDevices if an operation on the device `own` may not take these tensors of the CPU as well."""
    name = func.overloadpacket.__name__
    if func in INDEXING:
        _check_indexing(name, args, strays, own)
        return
    written = _written(func, args)
    for stray in strays:
        if stray.dim() or name in _NAMES_OF_NUMBERS or any(stray is item for item in written):
            message = (
                f"Expected all tensors to be on the same device, but found at least two devices, {own} and "
                f"{stray.device}! (in {name}, a tensor of shape {tuple(stray.shape)})"
            )
            raise MixedDevices(message, stray, name)


def _check_indexing(name: str, args: Sequence[Any], strays: Sequence[torch.Tensor], own: str) -> None:
    """Indices may be on the CPU; what is indexed may not, and values only if they are one number."""
    indexed, indices = args[0], [item for item in args[1] if item is not None]
    if any(indexed is stray for stray in strays):
        wanted = f"indices should be either on cpu or on the same device as the indexed tensor ({indexed.device})"
        raise MixedDevices(f"{wanted}, found {own}", indexed, name)
    for stray in strays:
        if stray.dim() and not any(stray is index for index in indices):
            message = f"{name}: expected self and values on the same device, found {own} and {stray.device}"
            raise MixedDevices(message, stray, name)


def _written(func: Any, args: Sequence[Any]) -> Iterable[Any]:
    """Return the arguments that an operation changes in place: those have to be on the device of the others."""
    schema = func._schema.arguments  # noqa: SLF001
    return [
        value
        for value, slot in zip(args, schema, strict=False)
        if slot.alias_info is not None and slot.alias_info.is_write
    ]


def check_generator(generator: torch.Generator | None, own: torch.device) -> None:
    """Raise RuntimeError if numbers for the device are to be drawn from a generator of another one.

    What arrives here is not the object that was passed, but one of the same state.
    """
    if generator is not None and all(generator._cdata != known._cdata for known in own_generators):  # type: ignore[attr-defined]  # noqa: SLF001
        message = f"Expected a '{own.type}' device type for generator but found '{generator.device.type}'"
        raise RuntimeError(message)


def no_numpy(own: torch.device) -> TypeError:
    """Return what torch raises when a tensor of a GPU is to become an array of NumPy."""
    return TypeError(
        f"can't convert {own} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
