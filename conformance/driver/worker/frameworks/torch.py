"""PyTorch: modules with registered parameters, plain objects that hold tensors, and functions."""

from __future__ import annotations

import copy
import hashlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from conformkit.conformance.driver.wire.arrays import Array, OutputError
from conformkit.conformance.driver.worker.frameworks.base import Gradients, HeldArray, RequestError, UnsupportedError
from conformkit.conformance.driver.worker.frameworks.layouts import in_evaluation
from conformkit.conformance.driver.worker.frameworks.numpy import (
    MAX_BYTES,
    Numpy,
    alias,
    from_numbers,
    plain,
    random_state,
    set_plain_mode,
)
from conformkit.conformance.driver.worker.frameworks.torch_training import AdamSteps, Holder
from conformkit.conformance.driver.worker.frameworks.walk import Slot, walk

if TYPE_CHECKING:
    from conformkit.conformance.driver.worker.frames_of import Place
    from conformkit.conformance.driver.worker.observing import Notes
from conformkit.conformance.driver.worker.steps import CallSteps

__all__ = ["Torch", "prepare"]

_NARROW = (torch.float16, torch.bfloat16)
_COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64}


def prepare(threads: int) -> None:
    """Set the number of threads and switch off TF32, before any implementation runs."""
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


_grad = torch.autograd.grad
_BACKWARD = (torch.Tensor.backward, torch.autograd.backward)
"""What torch itself has: an implementation may replace it."""


def _differentiated(scalar: torch.Tensor, leaves: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """Return the gradients that `backward` leaves in these tensors: that is what whoever trains finds."""
    if (torch.Tensor.backward, torch.autograd.backward) == _BACKWARD:
        return _grad(scalar, leaves, allow_unused=True)
    kept = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    try:
        scalar.backward()  # type: ignore[no-untyped-call]
        return [leaf.grad for leaf in leaves]
    finally:
        for leaf, grad in zip(leaves, kept, strict=True):
            leaf.grad = grad


class _Detached(TorchFunctionMode):
    """In this context, computed tensors are copied as numbers; torch itself refuses, because of their derivatives."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is not torch.Tensor.__deepcopy__ or args[0].is_leaf:
            return func(*args, **(kwargs or {}))
        value, memo = args
        return memo.setdefault(id(value), value.detach().clone())


class Torch:
    """The framework for implementations in PyTorch."""

    name = "torch"
    version = str(torch.__version__)

    def __init__(self, device: str = "cpu") -> None:
        _check_device(device)
        self._numpy = Numpy()
        self._device = torch.device(device)
        self._generators = _generators(self._device)

    def tensor(self, array: Array, *, cast: str | None, strided: bool) -> torch.Tensor:
        """Wrap `array`, cast; strided: its axes in the opposite order in memory, with gaps, so that no `view` works."""
        value = torch.from_numpy(array)
        if cast is not None:
            value = value.to(self.dtype(cast))
        value = value.to(self._device)
        if strided and value.ndim:
            wide = torch.zeros((*reversed(value.shape), 2), dtype=value.dtype, device=self._device)
            wide[..., 0] = value.permute(*reversed(range(value.ndim)))
            value = wide[..., 0].permute(*reversed(range(value.ndim)))
        return value

    def dtype(self, name: str) -> torch.dtype:
        """Return `torch.<name>`."""
        found = getattr(torch, name, None)
        if not isinstance(found, torch.dtype):
            message = f"torch has no dtype {name}"
            raise UnsupportedError(message)
        return found

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Join tensors (or NumPy's arrays) of one shape along a new first axis."""
        return torch.stack(list(arrays)) if isinstance(arrays[0], torch.Tensor) else np.stack(arrays)

    def is_array(self, value: object) -> bool:
        """Whether `value` is a tensor, an array or a NumPy scalar."""
        return isinstance(value, torch.Tensor | np.ndarray | np.generic)

    def array(self, value: Any) -> tuple[Array, str]:
        """Convert a tensor of any subclass, an array, or numbers."""
        if not isinstance(value, torch.Tensor):
            return plain(value) if self.is_array(value) else from_numbers(value)
        try:
            return _plain_tensor(value)
        except (OutputError, MemoryError):
            raise
        except Exception as error:
            message = f"returned a {type(value).__name__} that cannot be read as plain values: {error}"
            raise OutputError(message) from error

    def requires_grad(self, value: Any) -> bool:
        """Whether `value` is part of an autograd graph."""
        if not isinstance(value, torch.Tensor):
            return False
        with _unaided():
            return bool(value.requires_grad)

    @contextmanager
    def graph_watched(self) -> Iterator[Callable[[], bool]]:
        """Note whether an operation saves a tensor for its derivative, which none does under `no_grad`."""
        saved = False

        def note(value: torch.Tensor) -> torch.Tensor:
            nonlocal saved
            saved = True
            return value

        with torch.autograd.graph.saved_tensors_hooks(note, _itself):
            yield lambda: saved

    def copied(self, component: Any) -> Any:
        """Deep-copy it; of tensors left by an earlier call, such as attention weights, only the numbers."""
        with _Detached():
            return copy.deepcopy(component)

    def unrecorded(self) -> AbstractContextManager[Any]:
        """Use `torch.no_grad()`, as users do for evaluation."""
        return torch.no_grad()

    def observed(self, component: Any, notes: Notes) -> AbstractContextManager[Any]:
        """Note what modules return, and what the operations inside them give."""
        from conformkit.conformance.driver.worker.frameworks.torch_observing import observed  # noqa: PLC0415 - seldom asked for

        return observed(dict(_modules(component)), notes, self.array)

    def followed(
        self, component: Any, inputs: Mapping[str, Any], steps: CallSteps
    ) -> AbstractContextManager[Callable[[Any], int | None]]:
        """Note each operation, also inside torch's own functions. Raises UnsupportedError for a plain function."""
        from conformkit.conformance.driver.worker.frameworks.torch_steps import followed  # noqa: PLC0415 - seldom asked for

        if isinstance(component, types.FunctionType):
            message = "a function holds no parameters to follow"
            raise UnsupportedError(message)
        return followed(dict(_modules(component)), self.held(component), inputs, steps)

    def watched(self, component: Any, what: str, place: Place) -> AbstractContextManager[Callable[[Any], list[str]]]:
        """Note which results of a call in half precision become wider by accident, and stay so."""
        from conformkit.conformance.driver.worker.frameworks.torch_formats import formats_watched  # noqa: PLC0415 - seldom asked for

        del component
        if what != "formats":
            message = f"{what} are watched on the device ghost only"
            raise UnsupportedError(message)
        return formats_watched(place)

    def load_state(self, component: Any, other: Any) -> None:
        """Load the state of another component by `load_state_dict`. Raises UnsupportedError if there is none."""
        if not isinstance(component, nn.Module) or not isinstance(other, nn.Module):
            message = f"a {type(component).__name__} has no state_dict"
            raise UnsupportedError(message)
        component.load_state_dict(other.state_dict())

    def held(self, component: Any) -> list[HeldArray]:
        """List registered parameters and buffers of a module; of any other object, the tensors it holds."""
        if isinstance(component, nn.Module):
            found = _registered(component, "")
        else:
            found = [item for slot, value in _leaves(component) for item in _held(slot, value)]
        return alias(found, _address, _owner)

    def write(self, values: Iterable[tuple[HeldArray, Array]]) -> None:
        """Copy in place, outside the autograd graph."""
        with torch.no_grad():
            for held, array in values:
                held.value.copy_(torch.from_numpy(array))

    def cast(self, component: Any, dtype: str) -> None:
        """Convert floating-point tensors: of a module those registered, of any other object all."""
        wanted = self.dtype(dtype)
        if isinstance(component, nn.Module):
            _cast_module(component, wanted)
            return
        for module in _outermost(component):
            _cast_module(module, wanted)
        self._replace(component, lambda value: value.to(wanted) if value.is_floating_point() else value)

    def settle(self, component: Any) -> None:
        """Move a new component to the device, and put it into evaluation mode."""
        if self._device.type != "cpu":
            self.move(component)
        self.set_mode(component, "eval")

    @property
    def device(self) -> str:
        """The kind of device that inputs are made on."""
        return self._device.type

    def move(self, component: Any) -> None:
        """Move it as users do: a module by `to`, of any other object every tensor that it holds."""
        for module in [component] if isinstance(component, nn.Module) else _outermost(component):
            module.to(self._device)
        if not isinstance(component, nn.Module):
            self._replace(component, lambda value: value.to(self._device))

    def placed(self, value: Any) -> Any:
        """Return what is handed to a call, a tensor or a container of some, on the device."""
        if self.device == "cpu":
            return value
        holder = types.SimpleNamespace(value=value)
        self.move(holder)
        return holder.value

    def _replace(self, component: Any, converted: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Replace the tensors that an object holds by converted ones; shared tensors stay shared."""
        done: dict[object, torch.Tensor] = {}
        for slot, value in list(_leaves(component)):
            if isinstance(value, nn.Module):
                continue
            other = converted(value.detach())
            if other.dtype != value.dtype or other.device != value.device:
                slot.set(done.setdefault(_address(value), other.requires_grad_(value.requires_grad)))

    def set_mode(self, component: Any, mode: str) -> None:
        """Call `train()` or `eval()` where they exist, if some part is not in that mode yet."""
        if isinstance(component, nn.Module):
            training = mode == "train"
            if not _all_in(component, training):
                component.train(training)
        else:
            set_plain_mode(component, mode)

    def bound_layout(self, component: Any) -> AbstractContextManager[None]:
        """Read and write in evaluation mode where a change of mode changes parameters."""
        return in_evaluation(component)

    def modes(self, component: Any) -> tuple[bool | None, list[bool]]:
        """Return the training flag of the module, and the distinct ones of all its parts."""
        if not isinstance(component, nn.Module):
            return self._numpy.modes(component)
        return bool(component.training), sorted({bool(part.training) for part in component.modules()})

    def entry(self, component: Any, method: str | None) -> Callable[..., Any]:
        """Return the requested method, else what calling the component means."""
        if method is None and callable(component):
            called: Callable[..., Any] = component
            return called
        return self._numpy.entry(component, method)

    def recorded(self, component: Any, way: str, method: str | None, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Compile the entry of a module, or export the module. Raises UnsupportedError where that is not possible."""
        from conformkit.conformance.driver.worker.frameworks.torch_graphs import Compiled, Exported  # noqa: PLC0415 - seldom asked for

        component = self.copied(component)  # recording may leave tensors without values in it
        if way == "compiled":
            return Compiled(component, self.entry(component, method), method)
        return Exported(component, method, args, kwargs)

    def seed(self, seed: int) -> None:
        """Seed the global generators of Python, NumPy and torch."""
        self._numpy.seed(seed)
        for generator in self._generators:
            generator.manual_seed(seed)

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Fill what `torch.empty` and `to_empty` return; only where they would be filled by request of their user.

        The public switch imports a compiler first, which takes seconds.
        """
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        switch: Any = torch.utils.deterministic
        filled = switch.fill_uninitialized_memory
        try:
            torch._C._set_deterministic_algorithms(True, warn_only=True)  # noqa: SLF001
            switch.fill_uninitialized_memory = True
            yield
        finally:
            torch._C._set_deterministic_algorithms(before[0], warn_only=before[1])  # noqa: SLF001
            switch.fill_uninitialized_memory = filled

    def digest(self) -> str:
        """Return a digest of the global random state of Python, NumPy and torch."""
        states = [generator.get_state().numpy().tobytes() for generator in self._generators]
        return hashlib.sha1(b"".join([random_state(), *states]), usedforsecurity=False).hexdigest()

    def watch(self, tensors: Mapping[str, Any], names: Sequence[str]) -> None:
        """Turn the inputs whose derivatives are wanted into leaves."""
        for name in names:
            if not tensors[name].is_floating_point():
                message = f"{name} holds integers: it has no derivatives"
                raise RequestError(message)
            tensors[name].requires_grad_(True)

    def gradients(
        self, component: Any, out: Any, cotangent: Array, inputs: Mapping[str, Any], *, parameters: bool
    ) -> Gradients:
        """Pull the cotangent back; unreached tensors get None."""
        found: Sequence[torch.Tensor | None]
        wanted = dict(_trainable(self.held(component))) if parameters else {}
        leaves = [*inputs.values(), *wanted.values()]
        if leaves and self.requires_grad(out):
            # a scalar: with `grad_outputs`, torch imports its symbolic shapes, which takes longer than everything else
            scalar = (out * torch.from_numpy(cotangent).to(out.device, out.dtype)).sum()
            found = _differentiated(scalar, leaves)
        else:
            found = [None] * len(leaves)
        arrays = [None if grad is None else self.array(_dense(grad))[0] for grad in found]
        return Gradients(dict(zip(inputs, arrays, strict=False)), dict(zip(wanted, arrays[len(inputs) :], strict=True)))

    def trainable(self, component: Any) -> list[torch.Tensor]:
        """Return the parameters that require a gradient, each once."""
        return [value for _, value in _trainable(self.held(component))]

    def make_trainable(self, component: Any) -> None:
        """Request derivatives for the floating-point tensors of an object that holds weights."""
        for slot, value in list(_leaves(component)):
            if not isinstance(value, torch.Tensor) or not value.is_floating_point():
                continue
            if value.is_leaf:
                value.requires_grad_()
            else:
                slot.set(value.detach().requires_grad_())

    def holder(self, arrays: Mapping[str, Array]) -> nn.Module:
        """Return a module that holds these as its parameters."""
        return Holder(arrays).to(self._device)

    def put_gradients(self, component: Any, arrays: Mapping[str, Array]) -> None:
        """Set `.grad` of the parameters of these names."""
        own = dict(_trainable(self.held(component)))
        for name, array in arrays.items():
            own[name].grad = torch.from_numpy(array).to(own[name].device, own[name].dtype)

    def kept_gradients(self, component: Any) -> dict[str, Array | None]:
        """Return `.grad` of all parameters, by name."""
        own = _trainable(self.held(component))
        return {name: None if p.grad is None else self.array(_dense(p.grad))[0] for name, p in own}

    def learner(self, component: Any) -> AdamSteps:
        """Return a trainer for a component."""
        return AdamSteps(self.trainable(component))


def _check_device(device: str) -> None:
    """Raise UnsupportedError if torch has no such device here."""
    known: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if device in known and not known[device]():
        message = f"not run: needs {device}, and torch {torch.__version__} sees none here"
        raise UnsupportedError(message)


def _generators(device: torch.device) -> list[torch.Generator]:
    """Return the global generators that a call may draw from."""
    if device.type == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]
        return [torch.default_generator, *torch.cuda.default_generators]
    if device.type == "mps":
        return [torch.default_generator, torch.mps._get_default_mps_generator()]  # noqa: SLF001 - no public name
    return [torch.default_generator]


def _outermost(component: Any) -> list[nn.Module]:
    """Return the modules inside an object that is not a module itself."""
    return [value for _, value in _leaves(component) if isinstance(value, nn.Module)]


def _plain_tensor(value: torch.Tensor) -> tuple[Array, str]:
    with _unaided():
        bare = value.detach().as_subclass(torch.Tensor)  # from here on a subclass cannot override anything
        name = str(bare.dtype).removeprefix("torch.")
        if bare.layout is not torch.strided or bare.is_quantized or bare.is_nested or bare.is_complex():
            message = f"returned a tensor of layout {bare.layout}, dtype {name}, expected a dense one of real numbers"
            raise OutputError(message)
        if bare.numel() * 8 > 2 * MAX_BYTES:
            message = f"returned a tensor of shape {tuple(bare.shape)}, too big to be judged"
            raise OutputError(message)
        bare = bare.to(dtype=torch.float32) if bare.dtype in _NARROW else bare
        array = bare.cpu().resolve_conj().resolve_neg().numpy()
    return plain(array)[0], name


def _unaided() -> AbstractContextManager[None]:
    """Bypass what tensor subclasses make of torch's functions."""
    guard: AbstractContextManager[None] = torch._C.DisableTorchFunctionSubclass()  # noqa: SLF001 - no public name
    return guard


def _itself(value: torch.Tensor) -> torch.Tensor:
    return value


def _dense(grad: torch.Tensor) -> torch.Tensor:
    return grad if grad.layout is torch.strided else grad.to_dense()


def _registered(module: nn.Module, prefix: str) -> list[HeldArray]:
    """Return what `named_parameters` and `named_buffers` list, under each of its names."""
    parts: list[tuple[str, nn.Module]] = []
    _add_parts(module, f"{prefix}." if prefix else "", parts)
    return [
        _registered_one(path + name, value, kind)
        for kind, stored in (("parameter", "_parameters"), ("buffer", "_buffers"))
        for path, part in parts
        for name, value in getattr(part, stored).items()
        if value is not None
    ]


def _add_parts(module: nn.Module, path: str, parts: list[tuple[str, nn.Module]]) -> None:
    """Add a module and all its parts, a shared one each time: as `named_modules` does, in a tenth of the time."""
    parts.append((path, module))
    for name, part in module._modules.items():  # noqa: SLF001 - the public ways are the slow ones
        if part is not None:
            _add_parts(part, f"{path}{name}.", parts)


def _registered_one(name: str, value: torch.Tensor, kind: str) -> HeldArray:
    lazy = is_lazy(value)
    shape = None if lazy else tuple(value.shape)
    trainable = kind == "parameter" and value.requires_grad
    return HeldArray(name, value, shape, str(value.dtype).removeprefix("torch."), trainable, kind, lazy=lazy)


def _all_in(module: nn.Module, training: bool) -> bool:
    """Whether all parts are in this mode: `all(… for part in module.modules())` in a third of the time."""
    if module.training is not training:
        return False
    children = module._modules.values()  # noqa: SLF001 - the public ways build a set of all that they pass
    return all(child is None or _all_in(child, training) for child in children)


def _leaves(component: Any) -> Iterator[tuple[Slot, Any]]:
    return walk(component, lambda value: isinstance(value, torch.Tensor | nn.Module))


def _modules(component: Any) -> Iterator[tuple[str, nn.Module]]:
    if isinstance(component, nn.Module):
        yield from component.named_modules()
    elif not isinstance(component, types.FunctionType):
        for slot, value in _leaves(component):
            if isinstance(value, nn.Module):
                yield from value.named_modules(prefix=slot.name)


def _held(slot: Slot, value: Any) -> Iterator[HeldArray]:
    if isinstance(value, nn.Module):
        yield from _registered(value, slot.name)
    else:
        item = _registered_one(slot.name, value, "array")
        item.trainable = value.requires_grad
        yield item


def _trainable(held: list[HeldArray]) -> Iterator[tuple[str, torch.Tensor]]:
    for item in held:
        if item.value.requires_grad and item.value.is_leaf and not item.lazy and item.alias is None:
            yield item.name, item.value


def _cast_module(module: nn.Module, dtype: torch.dtype) -> None:
    """Like `module.to(dtype)`, but complex tables stay complex: `to` would drop their imaginary part."""
    if type(module).to is not nn.Module.to:  # it moves more than what is registered
        module.to(dtype)
        return

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_complex():
            return tensor.to(_COMPLEX.get(dtype, tensor.dtype))
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    module._apply(convert)  # type: ignore[no-untyped-call]  # noqa: SLF001 - there is no public way to convert by tensor
    if dtype is torch.float64:
        for part in module.modules():
            _widen_empty_caches(part)


def _widen_empty_caches(part: nn.Module) -> None:
    """Give plain attributes that hold zeros the wide format: for users they have that of the model from the start.

    Else `self.cache = self.cache.to(x)` copies, in inference mode once and for all: no later call can write to it.
    """
    for name, value in [*vars(part).items()]:
        if type(value) is torch.Tensor and value.dtype is torch.float32 and not value.requires_grad:
            empty = value.device.type == "cpu" and value.layout is torch.strided and not value.any()
            vars(part)[name] = value.to(torch.float64) if empty else value


def _address(value: torch.Tensor) -> object:
    value = getattr(value, "ghost_values", value)
    if value.layout is not torch.strided:
        return id(value)
    return value.data_ptr(), tuple(value.shape), value.stride(), value.dtype


def _owner(value: torch.Tensor) -> object:
    value = getattr(value, "ghost_values", value)
    return value.untyped_storage().data_ptr() if value.layout is torch.strided else id(value)
