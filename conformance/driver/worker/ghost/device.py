"""Registers the device with torch, once in a process: allocation, copies, factories, mixed precision."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from conformkit.conformance.driver.worker.ghost import tensor
from conformkit.conformance.driver.worker.ghost.autocast import register_autocast
from conformkit.conformance.driver.worker.ghost.tensor import NAME, GhostTensor, carried_out, values_of

__all__ = ["ensure", "keeping_identity", "why_not"]

_FACTORIES = (
    "arange", "arange.start", "arange.start_step", "bartlett_window", "blackman_window", "eye", "eye.m", "full",
    "hamming_window", "hann_window", "linspace", "logspace", "ones", "rand", "rand.generator", "randint",
    "randint.generator", "randint.low", "randint.low_generator", "randn", "randn.generator", "randperm",
    "randperm.generator", "range", "range.step", "scalar_tensor", "tril_indices", "triu_indices", "zeros",
)  # fmt: skip
"""Operations that make tensors from numbers; by themselves, some would resize an empty one."""
_WHOLE = ("one_hot",)
"""Operations that torch takes apart for a tensor like ours without the check of ids that CUDA has."""
_registered: list[Any] = []
"""Libraries of operators: what they register lasts as long as they do."""


def why_not() -> str:
    """Return why this torch cannot have such a device, or nothing."""
    try:
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend  # noqa: PLC0415
    except ImportError:
        return f"torch {torch.__version__} has no hooks for a device that is written in Python"
    del _setup_privateuseone_for_python_backend
    taken = torch._C._get_privateuse1_backend_name()  # noqa: SLF001 - no public name
    return f"the code registers a device of its own, {taken}" if taken not in {"privateuseone", NAME} else ""


def ensure() -> torch.device:
    """Register the device unless that was done before, and return it. `why_not` has said nothing."""
    if not _registered:
        _register()
    return tensor.HERE


def _register() -> None:
    from torch.utils.backend_registration import (  # noqa: PLC0415 - not in every torch
        _DummyBackendModule,
        _setup_privateuseone_for_python_backend,
    )

    class Module(_DummyBackendModule):
        """What torch asks of a device's module."""

        def get_amp_supported_dtype(self) -> list[torch.dtype]:
            """Return the formats of mixed precision."""
            return [torch.float16, torch.bfloat16]

        def synchronize(self, device: Any = None) -> None:
            """Wait for nothing."""

        def set_device(self, device: Any) -> None:
            """Choose the only one."""

        def empty_cache(self) -> None:
            """Give nothing back."""

        def get_rng_state(self, _: Any = None) -> torch.Tensor:
            """Return the state of the generator, which is the CPU's."""
            return torch.get_rng_state()

        def set_rng_state(self, state: torch.Tensor, _: Any = None) -> None:
            """Set the state of the generator, which is the CPU's."""
            torch.set_rng_state(state)

    _setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    tensor.HERE = torch.device(NAME, 0)
    library: Any = torch.library.Library  # it has no types
    own, every = library("aten", "IMPL"), library("_", "IMPL")
    own.impl("empty.memory_format", _empty, "PrivateUse1")
    own.impl("empty_strided", _empty_strided, "PrivateUse1")
    own.impl("_copy_from", _copy_from, "PrivateUse1")
    for name in (*_FACTORIES, *_WHOLE):
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
        own.impl(name, _factory(operation), "PrivateUse1")
    _registered.extend([own, every])
    register_autocast(own, every)
    _first_operation()


def _first_operation() -> None:
    """Carry out one operation, with a stand-in for distributed tensors.

    At the first operation on a subclass, torch imports those to recognize them, and with them its symbolic shapes,
    which takes as long as half of torch.
    """
    name = "torch.distributed.tensor"
    if name in sys.modules:
        return
    module = ModuleType(name)
    module.__dict__["DTensor"] = type("DTensor", (), {})
    sys.modules[name] = module
    try:
        torch.neg(GhostTensor(torch.zeros(1)))
    finally:
        del sys.modules[name]


def _factory(operation: Any) -> Any:
    return lambda *args, **kwargs: carried_out(operation, args, kwargs)


def _empty(
    size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Any:
    del layout, device, pin_memory
    options = {} if memory_format is None else {"memory_format": memory_format}
    with torch.inference_mode(False):
        return GhostTensor(torch.empty(size, dtype=dtype, device="cpu", **options))


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    del layout, device, pin_memory
    with torch.inference_mode(False):
        return GhostTensor(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    del non_blocking
    with torch.inference_mode(False):
        values_of(target).copy_(values_of(source))
    return target


@contextlib.contextmanager
def keeping_identity() -> Iterator[None]:
    """In this context, a module that is moved keeps its parameters as objects, as on any real device.

    Else tied weights came apart, and an optimizer that was made before would hold others.
    """
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
