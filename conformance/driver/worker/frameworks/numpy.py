"""NumPy: arrays wherever an object keeps them; no derivatives."""

from __future__ import annotations

import copy
import ctypes
import hashlib
import numbers
import random
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.random  # imported here, not at the first use in a worker

from conformkit.conformance.driver.wire.arrays import Array, OutputError
from conformkit.conformance.driver.worker.frameworks.base import Gradients, HeldArray, TrainingLoop, UnsupportedError
from conformkit.conformance.driver.worker.frameworks.walk import Slot, owners, walk

if TYPE_CHECKING:
    from conformkit.conformance.driver.worker.frames_of import Place
    from conformkit.conformance.driver.worker.observing import Notes
from conformkit.conformance.driver.worker.steps import CallSteps

__all__ = ["Numpy", "alias", "from_numbers", "plain", "random_state", "set_plain_mode"]

_HELD_KINDS = "fiub"
MAX_BYTES = 256 << 20


class Numpy:
    """The framework for implementations that use NumPy only."""

    name = "numpy"
    version = np.__version__
    device = "cpu"

    def tensor(self, array: Array, *, cast: str | None, strided: bool) -> Array:
        """Return `array`, cast; strided: its axes in the opposite order in memory, with gaps."""
        if cast is not None:
            array = array.astype(self.dtype(cast))
        if not strided or not array.ndim:
            return array
        wide = np.zeros((*reversed(array.shape), 2), dtype=array.dtype)
        wide[..., 0] = array.T
        return wide[..., 0].T

    def dtype(self, name: str) -> Any:
        """Return the scalar type of that name, such as `np.float32`."""
        try:
            return np.dtype(name).type
        except TypeError as error:
            message = f"NumPy has no dtype {name}"
            raise UnsupportedError(message) from error

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Join arrays of one shape along a new first axis."""
        return np.stack(arrays)

    def is_array(self, value: object) -> bool:
        """Whether `value` is an array or a NumPy scalar."""
        return isinstance(value, np.ndarray | np.generic)

    def array(self, value: Any) -> tuple[Array, str]:
        """Convert an array, a number or nested lists of numbers."""
        return plain(value) if self.is_array(value) else from_numbers(value)

    def requires_grad(self, value: Any) -> bool:  # noqa: ARG002
        """Never: NumPy has no derivatives."""
        return False

    def graph_watched(self) -> AbstractContextManager[Callable[[], bool]]:
        """Never: NumPy has no derivatives."""
        return nullcontext(lambda: False)

    def copied(self, component: Any) -> Any:
        """Deep-copy it."""
        return copy.deepcopy(component)

    def unrecorded(self) -> AbstractContextManager[Any]:
        """Do nothing: NumPy records nothing."""
        return nullcontext()

    def observed(self, component: Any, notes: Notes) -> AbstractContextManager[Any]:
        """Note what the objects that hold arrays return, and what is computed from these arrays."""
        from conformkit.conformance.driver.worker.frameworks.numpy_observing import observed  # noqa: PLC0415 - seldom asked for

        if isinstance(component, types.FunctionType):
            return nullcontext()
        arrays = [(slot, value) for slot, value in _arrays(component) if value.dtype.kind == "f"]
        return observed(owners(component, [slot.name for slot, _ in arrays]), arrays, notes)

    def followed(
        self, component: Any, inputs: Mapping[str, Any], steps: CallSteps
    ) -> AbstractContextManager[Callable[[Any], int | None]]:
        """Refuse: nothing tells which operations NumPy carries out on its own arrays."""
        del component, inputs, steps
        message = "the operations of NumPy can't be followed"
        raise UnsupportedError(message)

    def watched(self, component: Any, what: str, place: Place) -> AbstractContextManager[Callable[[Any], list[str]]]:  # noqa: ARG002
        """Refuse: there is one device, and formats are the code's own."""
        message = f"NumPy has no {what} to watch"
        raise UnsupportedError(message)

    def move(self, component: Any) -> None:  # noqa: ARG002
        """Refuse: there is one device."""
        message = "NumPy has no devices"
        raise UnsupportedError(message)

    def placed(self, value: Any) -> Any:
        """Return it as it is."""
        return value

    def load_state(self, component: Any, other: Any) -> None:  # noqa: ARG002
        """Refuse: plain objects have no common way to load a state."""
        message = "plain objects have no state_dict"
        raise UnsupportedError(message)

    def held(self, component: Any) -> list[HeldArray]:
        """List the numeric arrays beneath a component."""
        return alias([_held(slot, value) for slot, value in _arrays(component)], _address, _owner)

    def write(self, values: Iterable[tuple[HeldArray, Array]]) -> None:
        """Copy in place; an array that is read-only is replaced."""
        for held, array in values:
            if held.value.flags.writeable:
                held.value[...] = array
            elif held.replace is not None:
                held.value = array.astype(held.value.dtype)
                held.replace(held.value)

    def cast(self, component: Any, dtype: str) -> None:
        """Replace the floating arrays, keeping those that share memory shared."""
        wanted = np.dtype(self.dtype(dtype))
        done: dict[int, tuple[Array, Array]] = {}
        for slot, value in list(_arrays(component)):
            if value.dtype.kind == "f" and value.dtype != wanted:
                slot.set(_cast_view(value, wanted, done))

    def settle(self, component: Any) -> None:
        """Put a component that has modes into evaluation mode."""
        set_plain_mode(component, "eval")

    def set_mode(self, component: Any, mode: str) -> None:
        """Call `train()` or `eval()`, or set `training`, where they exist."""
        set_plain_mode(component, mode)

    def bound_layout(self, component: Any) -> AbstractContextManager[None]:
        """Change nothing."""
        del component
        return nullcontext()

    def modes(self, component: Any) -> tuple[bool | None, list[bool]]:
        """Return the attribute `training` where it is a boolean."""
        flag = getattr(component, "training", None)
        return (flag, [flag]) if isinstance(flag, bool) else (None, [])

    def entry(self, component: Any, method: str | None) -> Callable[..., Any]:
        """Return the method asked for, else `forward` where it is defined, else the component itself."""
        found = getattr(component, method or "forward", None)
        if method is not None and found is None:
            message = f"{type(component).__name__} has no method {method}"
            raise OutputError(message)
        chosen: Callable[..., Any] = found if callable(found) else component
        return chosen

    def recorded(self, component: Any, way: str, method: str | None, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ARG002
        """Refuse: NumPy records no graphs."""
        message = "NumPy records no graphs"
        raise UnsupportedError(message)

    def seed(self, seed: int) -> None:
        """Seed Python's and NumPy's global generators."""
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002

    def marking(self) -> AbstractContextManager[None]:
        """Do nothing: `np.empty` fills no memory."""
        return nullcontext()

    def digest(self) -> str:
        """Return a digest of the global random state of Python and NumPy."""
        return hashlib.sha1(random_state(), usedforsecurity=False).hexdigest()

    def watch(self, tensors: Mapping[str, Any], names: Sequence[str]) -> None:
        """Refuse: NumPy has no derivatives."""
        del tensors, names
        raise _without_derivatives()

    def gradients(
        self, component: Any, out: Any, cotangent: Array, inputs: Mapping[str, Any], *, parameters: bool
    ) -> Gradients:
        """Refuse: NumPy has no derivatives."""
        raise NotImplementedError

    def trainable(self, component: Any) -> list[Any]:
        """Return the floating arrays of a component."""
        return [item.value for item in self.held(component) if item.trainable and item.alias is None]

    def make_trainable(self, component: Any) -> None:
        """Do nothing: NumPy has no derivatives."""

    def holder(self, arrays: Mapping[str, Array]) -> Any:  # noqa: ARG002
        """Refuse: NumPy stores no gradients."""
        raise _without_derivatives()

    def put_gradients(self, component: Any, arrays: Mapping[str, Array]) -> None:  # noqa: ARG002
        """Refuse, for the same reason."""
        raise _without_derivatives()

    def kept_gradients(self, component: Any) -> dict[str, Array | None]:  # noqa: ARG002
        """Refuse, for the same reason."""
        raise _without_derivatives()

    def learner(self, component: Any) -> TrainingLoop:  # noqa: ARG002
        """Refuse: NumPy has no derivatives."""
        raise _without_derivatives()


def _without_derivatives() -> UnsupportedError:
    return UnsupportedError("NumPy has no automatic differentiation")


def plain(value: Any) -> tuple[Array, str]:
    """Convert a NumPy array or scalar, of whatever subclass, to one of the four dtypes that cross the wire."""
    array = np.asarray(value)
    kind, name = array.dtype.kind, array.dtype.name
    if kind not in _HELD_KINDS:
        message = f"an array of dtype {name} cannot be judged, expected real numbers, integers or booleans"
        raise OutputError(message)
    wanted = {"f": np.float64 if array.dtype.itemsize > 4 else np.float32, "b": np.bool_}.get(kind, np.int64)
    if array.size * np.dtype(wanted).itemsize > MAX_BYTES:
        message = f"an array of shape {array.shape} is bigger than {MAX_BYTES >> 20} MiB"
        raise OutputError(message)
    converted = array.astype(wanted, order="C", copy=False, subok=False)
    return np.ascontiguousarray(converted).reshape(array.shape), name


def from_numbers(value: Any) -> tuple[Array, str]:
    """Convert a number, or nested lists of numbers, such as token ids."""
    if not (isinstance(value, numbers.Real) or (isinstance(value, list | tuple) and value)):
        message = f"returned {type(value).__name__}, which is not an array"
        raise OutputError(message)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        message = f"returned a {type(value).__name__} that is not an array: {error}"
        raise OutputError(message) from error
    return plain(array)


def set_plain_mode(component: Any, mode: str) -> None:
    """Switch an object that is not a torch module, by its methods `train` and `eval` or its attribute `training`."""
    switch = getattr(component, mode, None)
    if callable(switch) and not isinstance(component, type):
        switch()
    elif isinstance(getattr(component, "training", None), bool):
        component.training = mode == "train"


def random_state() -> bytes:
    """Return the global random state of Python and NumPy as bytes."""
    bits: Any = numpy.random.get_bit_generator()  # type: ignore[attr-defined]
    state = _words(bits) if isinstance(bits, numpy.random.MT19937) else repr(bits.state).encode()
    return state + hash(random.getstate()).to_bytes(8, "little", signed=True)


def alias(held: list[HeldArray], address: Callable[[Any], object], owner: Callable[[Any], object]) -> list[HeldArray]:
    """Fill in which arrays are aliases of others, and which share memory with an earlier one."""
    first: dict[object, str] = {}
    owners: dict[object, str] = {}
    for item in held:
        if item.shape is None or 0 in item.shape:
            continue
        name = first.setdefault(address(item.value), item.name)
        item.alias = name if name != item.name else None
        name = owners.setdefault(owner(item.value), item.name)
        item.overlaps = name if name != item.name else None
    return held


def _words(bits: np.random.MT19937) -> bytes:
    """Read a Mersenne Twister in place, 624 words and a position: its dict would cost twenty times more."""
    return ctypes.string_at(bits.ctypes.state_address, 4 * 625)


def _arrays(component: Any) -> Iterator[tuple[Slot, Array]]:
    for slot, value in walk(component, lambda value: isinstance(value, np.ndarray)):
        if value.dtype.kind in _HELD_KINDS:
            yield slot, value


def _held(slot: Slot, value: Array) -> HeldArray:
    trainable = value.dtype.kind == "f"
    return HeldArray(slot.name, value, value.shape, value.dtype.name, trainable, "array", replace=slot.set)


def _root(value: Array) -> Array:
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value


def _owner(value: Array) -> object:
    return _root(value).__array_interface__["data"][0]


def _address(value: Array) -> object:
    return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str


def _cast_view(value: Array, dtype: np.dtype[Any], done: dict[int, tuple[Array, Array]]) -> Array:
    """Cast the array that owns the memory, once, and view it as `value` views the old one."""
    root = _root(value)
    if not root.flags.c_contiguous or root.dtype != value.dtype:
        root = value
    if id(root) not in done:
        done[id(root)] = root, root.astype(dtype, order="C")  # keep the old one: its id must not be reused
    new = done[id(root)][1]
    if root is value:
        return new
    old_size, size = value.dtype.itemsize, dtype.itemsize
    offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    strides = tuple(stride // old_size * size for stride in value.strides)
    view: Array = np.ndarray(value.shape, dtype, new, offset // old_size * size, strides)
    return view
