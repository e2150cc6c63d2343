"""`torch.autocast` on the device: which operations it lowers, and which it computes in float32, as on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from conformkit.conformance.driver.worker.ghost.tensor import NAME, GhostTensor

__all__ = ["register_autocast"]

_LOWERED = (
    "matmul", "mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "linear", "conv1d", "conv2d",
    "scaled_dot_product_attention",
)  # fmt: skip
_RAISED = (
    "softmax.int", "log_softmax.int", "layer_norm", "cross_entropy_loss", "nll_loss", "exp", "log", "pow.Tensor_Scalar",
    "rsqrt", "sum", "sum.dim_IntList", "cumsum", "norm.Scalar",
)  # fmt: skip
_KEY = "AutocastPrivateUse1"


def register_autocast(own: Any, every: Any) -> None:
    """Register both lists; every other operation takes what it is given."""
    every.fallback(torch.library.fallthrough_kernel, _KEY)
    for names, lowers in ((_LOWERED, True), (_RAISED, False)):
        for name in names:
            packet, _, overload = name.partition(".")
            operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
            own.impl(name, _converting(operation, lowers=lowers), _KEY)


def _converting(operation: Any, *, lowers: bool) -> Any:
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))  # noqa: SLF001 - no public names

    def convert(value: Any) -> Any:
        if type(value) in {list, tuple}:
            return type(value)(map(convert, value))
        if not isinstance(value, GhostTensor) or not value.is_floating_point() or value.dtype is torch.float64:
            return value
        return value.to(torch.get_autocast_dtype(NAME) if lowers else torch.float32)

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):  # noqa: SLF001
            return operation(*map(convert, args), **{name: convert(item) for name, item in kwargs.items()})

    return run
