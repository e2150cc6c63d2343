"""PyTorch: what modules return, and what the operations inside them give."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from conformkit.conformance.driver.wire.arrays import Array, OutputError
from conformkit.conformance.driver.worker.observing import Notes

__all__ = ["observed"]

_ACTIVATIONS = {"relu", "gelu", "silu", "threshold", "clamp", "clamp_min", "maximum", "where", "mul", "elu", "mish"}
_FUSED = "_scaled_dot_product"

ToArray = Callable[[Any], tuple[Array, str]]


@contextmanager
def observed(modules: Mapping[str, nn.Module], notes: Notes, array: ToArray) -> Iterator[None]:
    """Note what these modules return, by name, and what operations give inside."""
    names = {id(module): name for name, module in reversed(list(modules.items()))}

    def before(module: nn.Module, _: Any) -> None:
        if id(module) in names:
            notes.inside.append(names[id(module)])

    def after(module: nn.Module, _: Any, output: Any) -> None:
        if id(module) in names:
            notes.inside.pop()
            found = _first(output)
            if found is not None:
                with _quiet(), torch.no_grad():
                    notes.part(names[id(module)], type(module).__name__, array(found)[0])

    with ExitStack() as closing:
        for handle in (register_module_forward_pre_hook(before), register_module_forward_hook(after)):
            closing.callback(handle.remove)
        for kind in {type(module) for module in modules.values()}:
            closing.enter_context(_noting_direct_calls(kind, names, notes, before, after))
        closing.enter_context(_Operations(notes, array))
        yield


@contextmanager
def _noting_direct_calls(
    kind: type[nn.Module], names: Mapping[int, str], notes: Notes, before: Callable[[nn.Module, Any], None],
    after: Callable[[nn.Module, Any, Any], None],
) -> Iterator[None]:  # fmt: skip
    """See calls of `module.forward(x)` as well, which pass hooks by."""
    own = kind.__dict__.get("forward")
    if not isinstance(own, FunctionType):
        yield
        return

    @functools.wraps(own)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if notes.inside[-1:] == [names.get(id(self))]:  # a call of the module, which hooks have seen
            return own(self, *args, **kwargs)
        before(self, args)
        output = own(self, *args, **kwargs)
        after(self, args, output)
        return output

    kind.forward = forward
    try:
        yield
    finally:
        kind.forward = own


class _Operations(TorchDispatchMode):
    """Sees every operation that is carried out, also those inside torch's own functions."""

    def __init__(self, notes: Notes, array: ToArray) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._notes, self._array = notes, array

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry it out, and note what it gives."""
        del types
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        with torch.no_grad():
            if name.startswith(_FUSED):
                with contextlib.suppress(RuntimeError):  # a kernel with another signature shows no weights
                    self._notes.value(self._array(_weights(*args, **(kwargs or {})))[0])
            self._note(name.rstrip("_"), _first(out))
        return out

    def _note(self, name: str, value: Tensor | None) -> None:
        if value is None or not value.is_floating_point() or value.ndim < 2:
            return
        activation, attention = name in _ACTIVATIONS, value.ndim > 2 and value.shape[-1] == self._notes.keys
        if not activation and not attention:
            return
        try:
            array = self._array(value)[0]
        except OutputError:
            return
        if activation:
            self._notes.activation(array)
        if attention:
            self._notes.value(array)


def _weights(q: Tensor, k: Tensor, _: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Return the weights that a fused attention does not expose."""
    bias = options.get("attn_bias", options.get("attn_mask"))
    bias = next((item for item in rest if isinstance(item, Tensor)), bias)
    if k.shape[-3] != q.shape[-3]:  # groups of queries share keys
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    scores = q @ k.transpose(-2, -1) * (options.get("scale") or 1.0 / math.sqrt(q.shape[-1]))  # (…, Tq, Tk)
    if any(item is True for item in rest) or options.get("is_causal"):
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if bias is not None:
        scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias
    return torch.softmax(scores, dim=-1)


def _first(output: Any) -> Tensor | None:
    """Return the tensor that a call gave, or the first of several."""
    if isinstance(output, Tensor):
        return output
    items = output.values() if isinstance(output, Mapping) else output if isinstance(output, tuple | list) else ()
    return next((item for item in items if isinstance(item, Tensor)), None)


def _quiet() -> Any:
    """In this context, operations are ours, not the implementation's."""
    from torch.utils._python_dispatch import _disable_current_modes  # noqa: PLC0415

    return _disable_current_modes()
