"""PyTorch on a device that exists in name only: components and inputs are moved there, results come back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.worker.frameworks.base import NoGhostError
from conformkit.conformance.driver.worker.frameworks.torch import Torch
from conformkit.conformance.driver.worker.frameworks.walk import walk
from conformkit.conformance.driver.worker.ghost import device
from conformkit.conformance.driver.worker.ghost.generator import offer_generators
from conformkit.conformance.driver.worker.ghost.lazy import offer_lazy_parameters
from conformkit.conformance.driver.worker.ghost.tensor import NAME, values_of
from conformkit.conformance.driver.worker.ghost.watching import Kept, devices_watched

if TYPE_CHECKING:
    from conformkit.conformance.driver.worker.frames_of import Place

__all__ = ["TorchOnGhost"]


class TorchOnGhost(Torch):
    """The framework for implementations in PyTorch, on the ghost device. Raises NoGhostError where torch has none."""

    def __init__(self) -> None:
        reason = device.why_not()
        if reason:
            message = f"not run: needs the device {NAME}, and {reason}"
            raise NoGhostError(message)
        device.ensure()
        offer_generators()
        offer_lazy_parameters()
        super().__init__(NAME)

    def array(self, value: Any) -> tuple[Array, str]:
        """Convert a tensor of any device, or numbers; what the kit reads does not count as read by the code."""
        return super().array(values_of(value))

    def watched(self, component: Any, what: str, place: Place) -> AbstractContextManager[Callable[[Any], list[str]]]:
        """Note where a call reads values back, and where a tensor that it meets on another device comes from."""
        if what != "devices":
            return super().watched(component, what, place)
        return devices_watched(
            Kept(partial(_strays, component), partial(_is_told, component), partial(_reads_device, component)), place
        )

    def move(self, component: Any) -> None:
        """Move it as users do; parameters stay the objects that they were, as on a real device."""
        try:
            with device.keeping_identity():
                super().move(component)
        except RuntimeError as error:
            if "swap" not in str(error):
                raise
            super().move(component)  # TorchScript holds its parameters itself


def _strays(component: Any) -> set[int]:
    """Return the addresses of the tensors on the CPU that an object holds."""
    held = (value for _, value in walk(component, lambda value: isinstance(value, torch.Tensor)))
    return {value.untyped_storage().data_ptr() for value in held if value.device.type == "cpu"}


def _is_told(component: Any) -> bool:
    """Whether a constructor of the implementation takes a device, or settings with one: then calls may rely on it."""
    for module in component.modules() if isinstance(component, nn.Module) else [component]:
        if type(module).__module__.partition(".")[0] == "torch" or isinstance(module, FunctionType):
            continue
        if "device" in _parameters(type(module)) or any(map(_has_device, getattr(module, "__dict__", {}).values())):
            return True
    return False


def _reads_device(component: Any) -> bool:
    """Whether a constructor of the implementation uses an argument or a setting of that name."""
    modules = component.modules() if isinstance(component, nn.Module) else [component]
    codes = (getattr(vars(type(module)).get("__init__"), "__code__", None) for module in modules)
    return any(
        "device" in (*code.co_names, *code.co_varnames[: code.co_argcount]) for code in codes if code is not None
    )


def _parameters(kind: type) -> Collection[str]:
    try:
        return inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return ()


def _has_device(settings: Any) -> bool:
    """Whether this is an object of settings, or a dictionary of them, with an entry for the device."""
    if isinstance(settings, torch.Tensor | nn.Module):
        return False
    return "device" in (settings if isinstance(settings, dict) else getattr(settings, "__dict__", ()))
