"""Tensors of the device: each wraps a tensor of the CPU, and carries out operations on that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from conformkit.conformance.driver.worker.ghost import recurrent
from conformkit.conformance.driver.worker.ghost.rules import READS_BACK, check_devices, check_generator, no_numpy

__all__ = ["HERE", "NAME", "GhostTensor", "Watcher", "carried_out", "is_here", "listening", "tensors_in", "values_of"]

NAME = "ghost"
CPU = torch.device("cpu")
aten = torch.ops.aten
Watcher = Callable[[str, Any, Any], None]
"""Is told of each operation on the device: `reads` values back, or is `done`; the operation, and what it gives."""
listening: list[Watcher] = []
"""Who is told at present."""


class GhostTensor(torch.Tensor):
    """A tensor that says it is on the device. `ghost_values` are its values, on the CPU."""

    ghost_values: torch.Tensor

    @staticmethod
    def __new__(cls: type[GhostTensor], values: torch.Tensor) -> GhostTensor:  # noqa: PYI034 - torch makes it
        """Wrap values of the CPU."""
        made: GhostTensor = torch.Tensor._make_wrapper_subclass(  # noqa: SLF001 - its documented way
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=HERE,
        )
        made.ghost_values = values
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # noqa: SLF001

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Carry an operation out."""
        del types
        return carried_out(func, args, kwargs or {})

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        """Return what torch prints of a tensor that is not on the CPU."""
        more = ", requires_grad=True" if self.requires_grad else ""
        return f"{repr(self.ghost_values)[:-1]}, device='{HERE}'{more})"

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse, as torch does; `force` copies to the CPU first."""
        if not force:
            raise no_numpy(HERE)
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None) -> Any:
        """Refuse, as torch does."""
        del dtype
        raise no_numpy(HERE)

    def __format__(self, form: str) -> str:
        """Format one number as such, as torch does."""
        return format(self.item(), form) if self.dim() == 0 else format(repr(self), form)

    def tolist(self) -> Any:
        """Return its numbers, for which the host waits."""
        _tell("reads", "tolist", self)
        return self.ghost_values.tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Save the values and the device, so that `map_location` decides where they are loaded."""
        del protocol
        values = self.ghost_values.detach()
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (  # noqa: SLF001
            values.contiguous(), self.dtype, str(HERE), self.requires_grad,
        )  # fmt: skip

    def _assign(self, value: Any) -> None:
        """Take the values of another tensor of the device, as an assignment to `.data` does."""
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.ghost_values = value.ghost_values

    data = property(torch.Tensor.data.__get__, _assign)  # type: ignore[attr-defined]


HERE = torch.device("cpu")
"""The device; device.py sets it when it is registered."""


class _Form(NamedTuple):
    """What is known of an operation once and for all."""

    changed: tuple[tuple[int, str], ...]
    """The arguments, by place and name, that it changes in place and returns, in order."""
    returns: bool


@cache
def _form(func: Any) -> _Form:
    schema = func._schema  # noqa: SLF001
    written = [
        (place, slot.name)
        for place, slot in enumerate(schema.arguments)
        if slot.alias_info is not None and slot.alias_info.is_write
    ]
    aliased = any(one.alias_info is not None and one.alias_info.is_write for one in schema.returns)
    return _Form(tuple(written) if aliased else (), bool(schema.returns))


def values_of(value: Any) -> Any:
    """Return the values of a tensor of the device, or of those in a list; anything else as it is."""
    if isinstance(value, GhostTensor):
        return value.ghost_values
    return type(value)(map(values_of, value)) if type(value) in {list, tuple} else value


def tensors_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the tensors among the arguments of an operation, those in lists too."""
    found: list[torch.Tensor] = []
    for item in (*args, *kwargs.values()):
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif type(item) in {list, tuple}:
            found += [one for one in item if isinstance(one, torch.Tensor)]
    return found


_MADE_AT_ONCE = {aten._conj.default: aten.conj_physical.default, aten._neg_view.default: aten.neg.default}  # noqa: SLF001
"""What torch otherwise notes on a view, to be carried out by whoever reads it: down here nobody would any more."""


def _wrapped(value: Any) -> Any:
    if type(value) in {list, tuple}:
        return type(value)(map(_wrapped, value))
    if not isinstance(value, torch.Tensor) or isinstance(value, GhostTensor):
        return value
    return GhostTensor(value if value.layout is torch.strided else value.to_dense())


def _tell(what: str, func: Any, value: Any) -> None:
    for listener in listening:
        listener(what, func, value)


def is_here(device: Any) -> bool:
    """Whether this names the device."""
    return device is not None and torch.device(device).type == NAME


def carried_out(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Carry out an operation of which a tensor, or the device that is asked for, is the device.

    In inference mode a view of an ordinary tensor has to be ordinary, too; here all of them are.
    """
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return carried_out(func, args, kwargs)
    kwargs = dict(kwargs)
    if func is aten._has_compatible_shallow_copy_type.default:  # noqa: SLF001
        return all(isinstance(item, GhostTensor) for item in args)
    if func is aten._to_copy.default:  # noqa: SLF001 - an operator's name
        return _copied(func, args, kwargs)
    if func is aten.copy_.default:
        source = args[1]
        if isinstance(source, GhostTensor) and not isinstance(args[0], GhostTensor):
            _tell("reads", func, source)
        func(values_of(args[0]), values_of(source), *args[2:], **kwargs)
        return args[0]
    tensors = tensors_in(args, kwargs)
    strays = [item for item in tensors if not isinstance(item, GhostTensor)]
    if strays and len(strays) < len(tensors):
        check_devices(func, args, strays, str(HERE))
    check_generator(kwargs.get("generator"), HERE)
    if func in READS_BACK or _indexes_by_flags(func, args):
        _tell("reads", func, args[0])
    asked = kwargs.get("device")
    stays = is_here(asked) if asked is not None else True
    if asked is not None:
        kwargs["device"] = CPU
    own = _MADE_AT_ONCE.get(func) or recurrent.own(func)
    out = own(*map(values_of, args), **{name: values_of(item) for name, item in kwargs.items()})
    if torch.Tag.inplace_view in func.tags:  # `transpose_` and others change the shape of what they are called on
        with torch._C._DisableTorchDispatch():  # noqa: SLF001 - no public name
            func(*args, **kwargs)
    return _result(func, args, kwargs, out) if stays else out


def _copied(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Convert, and move if a device is named."""
    asked = kwargs.pop("device", None)
    stays = is_here(asked) if asked is not None else isinstance(args[0], GhostTensor)
    kwargs.pop("pin_memory", None)
    if not stays:
        _tell("reads", func, args[0])
    out = func(values_of(args[0]), **kwargs)
    made = GhostTensor(out) if stays else out
    _tell("done", func, made)
    return made


def _result(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> Any:
    """Return what was changed in place as the object that it was, anything new as a tensor of the device."""
    form = _form(func)
    if not form.returns:
        return None
    if form.changed:
        changed = [args[place] if place < len(args) else kwargs[name] for place, name in form.changed]
        return changed[0] if len(changed) == 1 else tuple(changed)
    made = _wrapped(out)
    _tell("done", func, made)
    return made


def _indexes_by_flags(func: Any, args: Sequence[Any]) -> bool:
    """Whether the shape of the result depends on values: `x[x > 0]`."""
    if func is not aten.index.Tensor:
        return False
    return any(isinstance(item, GhostTensor) and item.dtype in {torch.bool, torch.uint8} for item in args[1])
