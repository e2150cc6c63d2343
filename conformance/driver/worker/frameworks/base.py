"""What a framework must implement for the worker, and the errors that it raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.worker.frames_of import Place
from conformkit.conformance.driver.worker.observing import Notes
from conformkit.conformance.driver.worker.steps import CallSteps

__all__ = ["Framework", "Gradients", "HeldArray", "NoGhostError", "RequestError", "TrainingLoop", "UnsupportedError"]


class RequestError(Exception):
    """The request is invalid: a mistake of the harness."""


class UnsupportedError(Exception):
    """The framework cannot do this."""


class NoGhostError(UnsupportedError):
    """This version of the framework has no hooks for a device that exists in name only."""


@dataclass(slots=True)
class HeldArray:
    """An array that a component holds, under the name that leads to it.

    `alias` is the first name with the same memory and shape, `overlaps` the first one that shares memory in any way.
    """

    name: str
    value: Any
    shape: tuple[int, ...] | None
    dtype: str
    trainable: bool
    kind: str
    replace: Callable[[Any], None] | None = None
    alias: str | None = None
    overlaps: str | None = None
    lazy: bool = False

    def header(self) -> dict[str, Any]:
        """Return the form that is sent over the wire."""
        return {
            "name": self.name,
            "shape": None if self.shape is None else list(self.shape),
            "dtype": self.dtype,
            "trainable": self.trainable,
            "kind": self.kind,
            "alias": self.alias,
            "overlaps": self.overlaps,
            "lazy": self.lazy,
        }


@dataclass(slots=True)
class Gradients:
    """The results of a backward pass: None where no gradient arrived."""

    inputs: dict[str, Array | None]
    parameters: dict[str, Array | None]


class TrainingLoop(Protocol):
    """Descends from a loss, step by step."""

    def step(self, logits: Any, targets: Array, rate: float, max_norm: float) -> float:
        """Descend from the mean cross-entropy of logits (…, V) on targets (…), and return it; -100 is no target."""


class Framework(Protocol):
    """One small file implements this for a framework. Arrays come in and go out as NumPy."""

    name: str
    version: str

    @property
    def device(self) -> str:
        """The kind of device that inputs are made on."""

    def tensor(self, array: Array, *, cast: str | None, strided: bool) -> Any:
        """Make a native array; strided: with gaps between its elements."""

    def dtype(self, name: str) -> Any:
        """Return the framework's dtype of that name."""

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Join arrays of one shape along a new first axis."""

    def is_array(self, value: object) -> bool:
        """Whether `value` is a native array, or one of NumPy."""

    def array(self, value: Any) -> tuple[Array, str]:
        """Convert to NumPy in a dtype that crosses the wire, and name the real dtype. Raises OutputError."""

    def requires_grad(self, value: Any) -> bool:
        """Whether `value` is part of an autograd graph."""

    def graph_watched(self) -> AbstractContextManager[Callable[[], bool]]:
        """In this context, note whether anything is kept for derivatives; the callable it yields tells."""

    def copied(self, component: Any) -> Any:
        """Return a copy that shares no memory with a component."""

    def unrecorded(self) -> AbstractContextManager[Any]:
        """In this context, nothing is recorded for derivatives."""

    def observed(self, component: Any, notes: Notes) -> AbstractContextManager[Any]:
        """In this context, note what a call of the component does inside."""

    def followed(
        self, component: Any, inputs: Mapping[str, Any], steps: CallSteps
    ) -> AbstractContextManager[Callable[[Any], int | None]]:
        """In this context, note each operation and what it gives; the callable finds a result in the record.

        Raises UnsupportedError where operations can't be followed.
        """

    def watched(self, component: Any, what: str, place: Place) -> AbstractContextManager[Callable[[Any], list[str]]]:
        """In this context, note what a call does with `devices` or `formats`; the callable tells, given the result."""

    def load_state(self, component: Any, other: Any) -> None:
        """Load the state of another component, as users do."""

    def held(self, component: Any) -> list[HeldArray]:
        """List the arrays that a component holds."""

    def write(self, values: Iterable[tuple[HeldArray, Array]]) -> None:
        """Copy values into arrays, in place."""

    def cast(self, component: Any, dtype: str) -> None:
        """Convert the floating-point arrays of a component, in place."""

    def settle(self, component: Any) -> None:
        """Put a new component into evaluation mode."""

    def move(self, component: Any) -> None:
        """Move a component to the device."""

    def placed(self, value: Any) -> Any:
        """Return what is handed to a call, an array or a container of some, on the device."""

    def set_mode(self, component: Any, mode: str) -> None:
        """Switch between `train` and `eval`."""

    def bound_layout(self, component: Any) -> AbstractContextManager[None]:
        """Give parameters, for a while, the names and places that they had when it was built."""

    def modes(self, component: Any) -> tuple[bool | None, list[bool]]:
        """Return the training flag of the component, and the distinct ones of all its parts."""

    def entry(self, component: Any, method: str | None) -> Callable[..., Any]:
        """Return the callable that a call of the component uses."""

    def recorded(self, component: Any, way: str, method: str | None, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Return what stands in for a component, `compiled` or `exported` with arguments like these."""

    def seed(self, seed: int) -> None:
        """Seed every global source of random numbers."""

    def marking(self) -> AbstractContextManager[None]:
        """Fill memory that is taken without a value with NaN, or a huge whole number, where the framework can."""

    def digest(self) -> str:
        """Return a digest of the global random state."""

    def watch(self, tensors: Mapping[str, Any], names: Sequence[str]) -> None:
        """Request derivatives with respect to some of the inputs, before the call."""

    def gradients(
        self, component: Any, out: Any, cotangent: Array, inputs: Mapping[str, Any], *, parameters: bool
    ) -> Gradients:
        """Pull a cotangent back from the output to inputs and parameters."""

    def trainable(self, component: Any) -> list[Any]:
        """Return the trainable arrays of a component, as an optimizer takes them."""

    def make_trainable(self, component: Any) -> None:
        """Let derivatives reach the floating-point arrays of an object that holds weights."""

    def holder(self, arrays: Mapping[str, Array]) -> Any:
        """Return a component that holds these as its parameters."""

    def put_gradients(self, component: Any, arrays: Mapping[str, Array]) -> None:
        """Store gradients where backward passes leave them, for the parameters of these names."""

    def kept_gradients(self, component: Any) -> dict[str, Array | None]:
        """Return the gradients that backward passes have left there, None where there are none."""

    def learner(self, component: Any) -> TrainingLoop:
        """Return a trainer for a component."""
