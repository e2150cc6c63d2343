"""The implementation's functions and classes outside the model, as the suite sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.bound import set_only
from conformkit.conformance.binding.tools import BoundCall, BoundTool
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.wire.values import FIRST_CHARACTER, NotPlain, from_json
from conformkit.conformance.subject.component import Instance
from conformkit.conformance.subject.link import Link
from conformkit.conformance.subject.plain_values import alike
from conformkit.spec.arrays import Array
from conformkit.spec.tools import FUNCTION, TOKENIZER
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Held", "Parameters", "Tool", "ToolObject", "WorkerOptimizer", "Written"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ToolObject:
    """An object that a tool's constructor made."""

    tool: Tool
    handle: int

    def call(self, method: str, *, form: str | None = None, **arguments: Any) -> Any:
        """Call a method of the contract, and return its result as strings, numbers and lists.

        `form` passes arrays in that form, whatever was used before.
        """
        return self.tool.ask(self.handle, self.tool.bound.calls[method], arguments, form=form)

    def slope(self, name: str, **arguments: Any) -> tuple[float, Array]:
        """Return the result of calling it, one number, and its derivative with respect to one of the arguments."""
        return self.tool.slope_of(self.handle, name, arguments)

    def attribute(self, name: str) -> Any:
        """Return an attribute, or the result of a method of that name."""
        first: ImplementationFailure | None = None
        for attribute in self.tool.bound.attributes[name]:
            try:
                return self.tool.plain({"op": "ask", "handle": self.handle, "attribute": attribute})
            except ImplementationFailure as absent:
                first = first or absent
        assert first is not None
        raise first


@dataclass(frozen=True, slots=True)
class WorkerOptimizer:
    """An optimizer in the worker that is not one of the implementation's tools."""

    handle: int
    link: Link

    def call(self, method: str) -> None:
        """Call one of its methods without arguments."""
        self.link.request({"op": "ask", "handle": self.handle, "method": method}, {})


@dataclass(frozen=True, slots=True)
class Written:
    """The name of a file that the implementation writes or reads."""

    path: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """The trainable arrays of a component, as an optimizer takes them."""

    handle: int
    once: bool = False
    """Whether they can be iterated only once, like the result of `model.parameters()`."""


class Held:
    """The kit's own trainable arrays with gradients, for tools that work on parameters."""

    def __init__(self, link: Link, arrays: Mapping[str, Array]) -> None:
        self._link = link
        self._shapes = {name: array.shape for name, array in arrays.items()}
        self.handle: int = link.request({"op": "hold"}, _floats(arrays)).header["handle"]

    @property
    def parameters(self) -> Parameters:
        """The argument for an optimizer."""
        return Parameters(self.handle)

    def put(self, **gradients: Array) -> None:
        """Set gradients, by the names of their arrays."""
        self._link.request({"op": "gradients", "handle": self.handle}, _floats(gradients))

    def gradients(self) -> dict[str, Array | None]:
        """Return the existing gradients, None where there is none."""
        found = self._link.request({"op": "gradients", "handle": self.handle}, {}).tensors
        return {name: self._checked(name, found[name]) if name in found else None for name in self._shapes}

    def values(self) -> dict[str, Array]:
        """Return the arrays as they are now."""
        found = self._link.request({"op": "read", "handle": self.handle}, {}).tensors
        if gone := self._shapes.keys() - found.keys():
            raise ClauseFailure(f"{len(gone)} of {len(self._shapes)} arrays no longer exist")
        return {name: self._checked(name, found[name]) for name in self._shapes}

    def _checked(self, name: str, array: Array) -> Array:
        if array.shape != self._shapes[name]:
            raise ClauseFailure(f"an array of shape {self._shapes[name]} now has shape {array.shape}")
        return array.astype(np.float64)


class Tool:
    """One tool of the implementation."""

    def __init__(self, bound: BoundTool, link: Link) -> None:
        self.bound = bound
        self.link = link
        self.form = bound.arrays
        """How arrays are passed, once that is known."""
        self.settled: dict[str | None, Arguments] = {}
        """The arguments of its methods (`__init__`: its constructor), once it is known by which it can be called."""

    def like(self, link: Link) -> Tool:
        """Return the same tool in another worker."""
        other = Tool(self.bound, link)
        other.form = self.form
        other.settled = dict(self.settled)
        return other

    @property
    def name(self) -> str:
        """The tool's name in the contract."""
        return self.bound.tool.name

    @property
    def variant(self) -> Variant:
        """None of the model's choices concerns a tool."""
        return CANONICAL

    def offers(self, what: str) -> bool:
        """Whether it takes an optional argument (`label-smoothing`); `gradients`: whether it can be differentiated."""
        return self.link.is_torch if what == "gradients" else self.bound.offers.get(what, False)

    def stride(self, **arguments: int) -> int:
        """Return how far windows of these arguments lie apart: 1 unless that is declared."""
        if self.bound.stride is None:
            return 1
        stride = self.bound.stride.template(arguments)[0][0]
        if type(stride) is not int or stride < 1:
            raise ClauseFailure(f"the declared stride of {self.name} is {stride}, expected a positive number")
        return stride

    def requires(self, what: str) -> None:
        """Raise NotApplicable unless it takes this optional argument."""
        if not self.offers(what):
            raise NotApplicable(f"{self.name} has no {what}", lacks=what)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def make(self, **arguments: Any) -> ToolObject:
        """Construct an object."""
        assert self.bound.construct is not None
        return self._settle("__init__", self.bound.construct, partial(self._make, arguments))

    def _make(self, arguments: Mapping[str, Any], call: BoundCall) -> ToolObject:
        header, tensors = self._filled(call, arguments)
        header |= {"op": "build", "path": self.bound.path, "factory": self.bound.factory}
        return ToolObject(self, self.link.request(header, tensors).header["handle"])

    def __call__(self, **arguments: Any) -> Any:
        """Call the function, and return its result as strings, numbers and lists.

        Optional arguments that are not given keep their defaults.
        """
        return self.ask(self._function(arguments), self.bound.calls[FUNCTION], arguments)

    def leaves(self, **arguments: Any) -> Mapping[str, Array]:
        """Call the function, and return its array arguments as they are afterwards."""
        self(**arguments)  # by now it is known how arrays are passed, and by which names
        call = self.bound.calls[FUNCTION]
        call = replace(call, arguments=self.settled.get(call.method, call.arguments))
        header, tensors = self._filled(call, arguments)
        header |= {"op": "ask", "handle": self._function(arguments), "method": None, "output": None, "echo": True}
        reply = self.link.request(header, tensors)
        if not reply.tensors:
            raise NotApplicable(f"{self.name} takes lists, of which a copy is passed")
        return {name.removeprefix("echo:"): array for name, array in reply.tensors.items()}

    def seeded(self, seed: int, **arguments: Any) -> Any:
        """Call the function after seeding all global random number generators."""
        return self.ask(self._function(arguments), self.bound.calls[FUNCTION], arguments, seed=seed)

    def ask(
        self, handle: int, call: BoundCall, arguments: Mapping[str, Any],
        *, seed: int | None = None, form: str | None = None,
    ) -> Any:  # fmt: skip
        """Call a method or function; arrays are passed as tensors, as arrays or as lists, whichever it takes."""
        return self._settle(call.method, call, partial(self._ask, handle, arguments, seed, form))

    def _settle(self, method: str | None, call: BoundCall, made: Callable[[BoundCall], _T]) -> _T:
        """Call it as callers of the contract do, or if that is refused as it is bound; the first that works stays."""
        if method in self.settled or not call.before:
            return made(replace(call, arguments=self.settled.get(method, call.arguments)))
        first: ImplementationFailure | None = None
        for arguments in (*call.before, call.arguments):
            try:
                found = made(replace(call, arguments=arguments))
            except ImplementationFailure as refused:
                first = first or refused
                continue
            self.settled[method] = arguments
            return found
        assert first is not None
        raise first

    def _ask(
        self, handle: int, arguments: Mapping[str, Any], seed: int | None, form: str | None, call: BoundCall
    ) -> Any:
        form = form or self.form
        if form is None and _holds_array(list(arguments.values())):
            return self._first_ask(handle, call, arguments, seed)
        value = self.plain(*self._asked(handle, call, arguments, seed, form))
        if (
            self.bound.plain
            and form == self.bound.arrays
            and call.method is None
            and _holds_array([*arguments.values()])
        ):
            self._compare_forms(value, lambda form: self.plain(*self._asked(handle, call, arguments, seed, form)))
        return value

    def _asked(
        self, handle: int, call: BoundCall, arguments: Mapping[str, Any], seed: int | None, form: str | None
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the request that calls it."""
        header, tensors = self._filled(call, arguments, form)
        asked = {"op": "ask", "handle": handle, "method": call.method, "output": self._output(call), "seed": seed}
        return header | asked, tensors

    def _compare_forms(self, value: Any, again: Callable[[str], Any]) -> None:
        """Fail if tensors, or NumPy arrays, give other numbers than the declared form: callers do not know of it."""
        for form in sorted({"tensor", "array"} - {self.bound.arrays}):
            try:
                other = again(form)
            except (ImplementationFailure, ClauseFailure):
                continue
            if not alike(other, value) and alike(again(str(self.bound.arrays)), value):
                declared = f"{self.bound.arrays}s, which conform.toml declares"
                raise ClauseFailure(f"{self.name} gives other numbers for {form}s than for {declared}")

    def plain(self, header: Mapping[str, Any], tensors: Mapping[str, Array] | None = None) -> Any:
        """Send a request whose reply is a value."""
        try:
            reply = self.link.request(header, tensors or {})
            return from_json(reply.header["value"], large=reply.tensors)
        except NotPlain as problem:
            raise ClauseFailure(f"{self.name} returned an unsupported value: {problem}") from None

    def slope(self, name: str, **arguments: Any) -> tuple[float, Array]:
        """Return the result of a function of arrays, one number, and its derivative with respect to one of them.

        Raises NotApplicable if it takes NumPy arrays or lists: these record nothing for derivatives.
        """
        if self.form in {"array", "list"}:
            raise NotApplicable(f"{self.name} takes {self.form}s, which have no gradients")
        return self.slope_of(self._function(arguments), name, arguments)

    def slope_of(self, handle: int, name: str, arguments: Mapping[str, Any]) -> tuple[float, Array]:
        """Return the same for an object in the worker."""
        call = self.bound.calls[FUNCTION]
        return self._settle(call.method, call, partial(self._slope, handle, name, arguments))

    def _slope(self, handle: int, name: str, arguments: Mapping[str, Any], call: BoundCall) -> tuple[float, Array]:
        header, tensors = self._filled(call, arguments, form="tensor")
        header |= {"op": "vjp", "handle": handle, "wrt": [name], "output": self._output(call)}
        reply = self.link.request({**header, "watch": False}, {**tensors, "cotangent": np.array(1.0)})
        gradient = reply.tensors.get(f"grad:{name}")
        if gradient is None or gradient.shape != arguments[name].shape or reply.tensors["out"].shape != ():
            got = "nothing" if gradient is None else f"shape {gradient.shape}"
            raise ClauseFailure(f"the gradient with respect to {name} is {got}, expected shape {arguments[name].shape}")
        return float(reply.tensors["out"]), gradient.astype(np.float64)

    # -- the wire ------------------------------------------------------------------------------------------------------

    def _function(self, arguments: Mapping[str, Any]) -> int:
        """Return the function, or an object of the class that stands for it, made with those options."""
        if self.bound.construct is not None:
            texts = self.bound.tool.texts
            taken = {texts.get(name, name) for name in self.bound.construct.arguments.names()}
            return self.make(**{name: value for name, value in arguments.items() if name in taken}).handle
        made = self.link.request({"op": "build", "path": self.bound.path}, {})
        return int(made.header["handle"])

    def _first_ask(self, handle: int, call: BoundCall, arguments: Mapping[str, Any], seed: int | None) -> Any:
        """Find out how arrays are passed: the first form with which the call does not raise; undecided if none."""
        refused: ImplementationFailure | None = None
        for form in self._forms(arguments):
            self.form = form
            try:
                return self._ask(handle, arguments, seed, None, call)
            except ImplementationFailure as failure:
                refused = refused or failure
        self.form = None
        assert refused is not None
        raise refused

    def _forms(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return the forms in which to pass arrays, the most usual first."""
        as_lists = any(name in self.bound.tool.lists for name in arguments)
        forms = ("list", "tensor", "array") if as_lists else ("tensor", "array", "list")
        return [form for form in forms if form != "tensor" or self.link.is_torch]

    def _output(self, call: BoundCall) -> Any:
        return list(call.output) if isinstance(call.output, tuple) else call.output

    def _filled(
        self, call: BoundCall, given: Mapping[str, Any], form: str | None = None
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        tensors: dict[str, Array] = {}
        taken = call.arguments.names() | self.bound.globals.names()
        marked = {
            mark: np.isin(given[ids], given[of])
            for mark, (ids, of) in self.bound.tool.marks.items() if mark in taken
        }  # fmt: skip
        every = {**call.defaults, **given, **marked}
        values = {name: self._template(name, v, tensors, form) for name, v in every.items()}
        values |= {name: _text(given[of]) for name, of in self.bound.tool.texts.items() if name in taken}
        values |= {TOKENIZER: {"$tokenizer": True}} if TOKENIZER in taken else {}
        for name, elements in self.bound.tool.elements.items():
            values |= dict(zip(elements, values.get(name) or (), strict=False))
        filled = {**dict.fromkeys(taken), **values}
        args, kwargs = set_only(call.arguments, values).template(filled)
        header: dict[str, Any] = {"args": args, "kwargs": kwargs}
        if call.method is None and self.bound.globals.named:
            _, read = set_only(self.bound.globals, values).template(filled)
            header["globals"] = {"module": self.bound.path.partition(":")[0], "values": read}
        return header, tensors

    def _template(self, name: str, value: Any, tensors: dict[str, Array], form: str | None) -> Any:
        """Return the reference for an argument; arrays are added to those to send."""
        if isinstance(value, Instance | ToolObject | WorkerOptimizer | Parameters | Written):
            return _reference(value)
        if isinstance(value, tuple | list) and any(isinstance(item, tuple | list | np.ndarray) for item in value):
            return [self._template(f"{name}.{n}", item, tensors, form) for n, item in enumerate(value)]
        if not isinstance(value, np.ndarray):
            return list(value) if isinstance(value, tuple) else value
        form = form or self.form or "tensor"
        if form == "list":
            return value.tolist()
        tensors[name] = _float(value)
        return {"$tensor" if form == "tensor" else "$array": name}


def _text(ids: Array) -> str:
    """Return a text with a character for each id, of which the worker's tokenizer makes the same ids again."""
    return "".join(chr(FIRST_CHARACTER + int(number)) for number in ids)


def _holds_array(value: Any) -> bool:
    """Whether a value is an array, or a list that contains one."""
    return isinstance(value, np.ndarray) or (isinstance(value, list | tuple) and any(map(_holds_array, value)))


def _reference(value: Instance | ToolObject | WorkerOptimizer | Parameters | Written) -> dict[str, Any]:
    """Return the reference to an object in the worker."""
    if isinstance(value, Written):
        return {"$file": value.path}
    if isinstance(value, Parameters):
        return {"$parameters": value.handle, "once": value.once}
    return {"$handle": value.handle}


def _float(array: Array) -> Array:
    """Return numbers in float32, as models have them."""
    return np.ascontiguousarray(array, np.float32).reshape(array.shape) if array.dtype.kind == "f" else array


def _floats(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _float(np.asarray(array, np.float64)) for name, array in arrays.items()}
