"""Parameters of lazy layers on the device: without a shape until the first call, and lazy wherever they are moved."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import parameter

from conformkit.conformance.driver.worker.ghost import tensor
from conformkit.conformance.driver.worker.ghost.tensor import GhostTensor

__all__ = ["offer_lazy_parameters"]

_Mixin: Any = parameter.UninitializedTensorMixin  # type: ignore[attr-defined]
_Tensor = torch.Tensor
_CONVERTING = (
    _Tensor.to, _Tensor.half, _Tensor.float, _Tensor.double, _Tensor.char, _Tensor.short, _Tensor.int, _Tensor.long,
    _Tensor.detach,
)  # fmt: skip
"""What may be called on one without a shape, and gives another tensor."""


class _Lazy:
    """A parameter or a buffer of the device that has no shape yet."""

    _allowed_methods = (*_Mixin._allowed_methods, _Tensor.detach, _Tensor.requires_grad_)  # noqa: SLF001
    __new__: Any = GhostTensor.__new__

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape, as the same object."""
        values = torch.empty(shape, device=device or tensor.HERE, dtype=dtype or self.dtype)
        self.__class__ = GhostTensor
        self.data = values

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        """Copy it without a shape."""
        return memo.setdefault(id(self), _lazily(self, self.ghost_values))


class _LazyParameter(_Lazy, parameter.UninitializedParameter, GhostTensor):
    pass


class _LazyBuffer(_Lazy, parameter.UninitializedBuffer, GhostTensor):
    pass


def offer_lazy_parameters() -> None:
    """Let those of torch be made on the device, and stay lazy when they are moved there."""
    if hasattr(_Mixin, "knows_ghost"):
        return
    _Mixin.knows_ghost = True
    _Mixin.__torch_function__ = classmethod(_staying_lazy(_Mixin.__torch_function__.__func__))
    for kind in (parameter.UninitializedParameter, parameter.UninitializedBuffer):
        kind.__new__ = staticmethod(_placing(kind.__new__))  # type: ignore[method-assign]


def _staying_lazy(plain: Any) -> Any:
    """Return a `__torch_function__` after which whatever is moved to the device or converted there is still lazy."""

    def call(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _CONVERTING:
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - no public name
                out = func(*args, **(kwargs or {}))
            if isinstance(out, GhostTensor):
                return out if isinstance(out, _Lazy) else _lazily(args[0], out.ghost_values)
        return plain(cls, func, types, args, kwargs)

    return call


def _placing(plain: Any) -> Any:
    """Return a `__new__` that makes one of the device if that is asked for."""

    def make(cls: Any, *args: Any, device: Any = None, **more: Any) -> Any:
        if not tensor.is_here(device):
            return plain(cls, *args, device=device, **more) if device is not None else plain(cls, *args, **more)
        before = plain(cls, *args, **more)
        return _lazily(before, torch.empty(0, dtype=before.dtype))

    return make


def _lazily(before: torch.Tensor, values: torch.Tensor) -> Any:
    kind: Any = _LazyParameter if isinstance(before, parameter.UninitializedParameter) else _LazyBuffer
    made = kind(values)
    made.__dict__.update({name: item for name, item in vars(before).items() if name != "ghost_values"})
    if kind is _LazyParameter:
        made._is_param = True  # noqa: SLF001 - how torch knows one that is no longer lazy
    return made.requires_grad_(before.requires_grad)
