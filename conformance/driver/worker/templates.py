"""Argument templates: JSON that says what to pass, with placeholders for arrays, names and objects."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.wire.values import FIRST_CHARACTER
from conformkit.conformance.driver.worker import outputs, sequences
from conformkit.conformance.driver.worker.frameworks.base import Framework, RequestError

__all__ = ["CallArguments", "Filler", "known"]

CallArguments = tuple[list[Any], dict[str, Any]]
"""Arguments by position, and by name."""

_BEGIN = 0.25
"""What vectors begin with that may be scales or shifts."""
NO_COMPONENTS: Mapping[int, Any] = types.MappingProxyType({})


class Filler:
    """Fills templates for one request. The same input named twice is the same array both times."""

    def __init__(
        self,
        framework: Framework,
        inputs: Mapping[str, Array],
        resolve: Callable[[str], Any],
        component: Any = None,
        components: Mapping[int, Any] = NO_COMPONENTS,
        dtype: str | None = None,
        seed: int = 0,
    ) -> None:
        self._random = functools.cache(functools.partial(np.random.default_rng, seed))  # few templates want one
        self._framework = framework
        self._inputs = inputs
        self._resolve = resolve
        self._component = component
        self._components = components
        self._dtype_of_call = dtype
        self.tensors: dict[str, Any] = {}
        """The native arrays made so far, by the name of their input."""

    def fill(self, template: Any) -> Any:
        """Return the value of `template`."""
        if isinstance(template, list):
            return [self.fill(item) for item in template]
        if not isinstance(template, dict):
            return template
        for key, make in self._MAKERS.items():
            if key in template:
                return make(self, template)
        return {key: self.fill(value) for key, value in template.items()}

    def arguments(self, header: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Fill the `args` and `kwargs` of a request or of a `$object`."""
        args, kwargs = header.get("args") or [], header.get("kwargs") or {}
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            message = "args must be a list, kwargs an object"
            raise RequestError(message)
        return [self.fill(item) for item in args], {key: self.fill(value) for key, value in kwargs.items()}

    def calls(self, header: Mapping[str, Any], filled: CallArguments) -> list[CallArguments]:
        """Return the arguments of each call that a request stands for: those filled, or some for each sequence.

        Whatever was done to the arrays since the arguments were filled holds for each.
        """
        if not header.get("each"):
            return [filled]
        found = []
        for tensors in sequences.rows(self.tensors, self._inputs, header["each"], self._framework):
            one = copy.copy(self)
            one.tensors = tensors
            found.append(one.arguments(header))
        return found

    def tensor(self, template: Mapping[str, Any]) -> Any:
        """Return the native array of an input, made once."""
        name = template["$tensor"]
        if name not in self.tensors:
            if name not in self._inputs:
                message = f"the payload has no array {name!r}"
                raise RequestError(message)
            cast, strided = template.get("cast"), bool(template.get("strided"))
            self.tensors[name] = self._framework.tensor(self._inputs[name], cast=cast, strided=strided)
        return self.tensors[name]

    def _object(self, template: Mapping[str, Any]) -> Any:
        """Return what a class or function gives, or what that gives when called, or a part of it.

        In a call its floating-point arrays get the number format of the component, as arrays within the component have.
        """
        args, kwargs = self.arguments(template)
        value = self._resolve(template["$object"])(*args, **kwargs)
        if template.get("by_class") and type(value).__module__ != "builtins":
            value = type(value)(*args, **kwargs)
        if "then" in template:
            value = self._framework.placed(value)  # a table in it, made where it was built, meets the call's arrays
            args, kwargs = self.arguments(template["then"])
            method = template["then"].get("method")
            value = (getattr(value, method) if method else value)(*args, **kwargs)
        if template.get("output") is not None:
            value = outputs.part(value, template["output"])
        value = self._framework.placed(value)
        return value if self._dtype_of_call is None else self._typed(value, self._dtype_of_call)

    def _typed(self, value: Any, dtype: str) -> Any:
        if type(value) in {tuple, list}:
            return type(value)(self._typed(item, dtype) for item in value)
        holder = types.SimpleNamespace(value=value)
        self._framework.cast(holder, dtype)
        return holder.value

    def _name(self, template: Mapping[str, Any]) -> Any:
        return self._resolve(template["$name"])

    def _self(self, template: Mapping[str, Any]) -> Any:
        part = template["$self"]
        return getattr(self._component, part) if isinstance(part, str) else self._component

    def _list(self, template: Mapping[str, Any]) -> Any:
        """Return an input as a list of plain numbers."""
        return self._framework.array(self.tensor({"$tensor": template["$list"]}))[0].tolist()

    def _array(self, template: Mapping[str, Any]) -> Any:
        """Return an input as a NumPy array, for code that takes those whatever its framework."""
        return self._inputs[template["$array"]]

    def _handle(self, template: Mapping[str, Any]) -> Any:
        return known(self._components, template["$handle"])

    def _file(self, template: Mapping[str, Any]) -> str:
        """Return the name of a file that may be written, and make its folder."""
        path = Path(template["$file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    def _parameters(self, template: Mapping[str, Any]) -> Any:
        """Return the trainable arrays of a component, as an optimizer takes them: a list, or an iterator."""
        found = self._framework.trainable(known(self._components, template["$parameters"]))
        return iter(found) if template.get("once") else found

    def _weights(self, _template: Mapping[str, Any]) -> Any:
        """Return the weights that a function gets as an argument."""
        return getattr(self._component, "params", None)

    def _rng(self, _template: Mapping[str, Any]) -> Any:
        """Return a generator of random numbers, the same for all arguments."""
        return self._random()

    def _shape(self, template: Mapping[str, Any]) -> Any:
        """Return an array of this shape, to be filled later: a matrix of small random numbers, or a vector."""
        shape = [int(extent) for extent in template["$shape"]]
        spread = max(shape[-2:-1] or [1]) ** -0.5
        drawn = self._random().normal(0.0, spread, shape) if len(shape) > 1 else np.full(shape, _BEGIN)
        return self._framework.tensor(drawn, cast=None, strided=False)

    def _tokenizer(self, _template: Mapping[str, Any]) -> Any:
        """Return a tokenizer for texts that were made of ids."""
        return OfCharacters()

    def _dtype(self, template: Mapping[str, Any]) -> Any:
        return self._framework.dtype(template["$dtype"])

    _MAKERS: ClassVar[dict[str, Callable[[Filler, Mapping[str, Any]], Any]]] = {
        "$tensor": tensor,
        "$object": _object,
        "$name": _name,
        "$array": _array,
        "$list": _list,
        "$file": _file,
        "$handle": _handle,
        "$parameters": _parameters,
        "$dtype": _dtype,
        "$weights": _weights,
        "$rng": _rng,
        "$shape": _shape,
        "$self": _self,
        "$tokenizer": _tokenizer,
    }


class OfCharacters:
    """A tokenizer as code calls one: an id for each character of a text, whatever options it gets."""

    def encode(self, text: str, *_: Any, **_options: Any) -> list[int]:
        """Return the ids of a text."""
        return [ord(character) - FIRST_CHARACTER for character in text]

    def decode(self, ids: Any, *_: Any, **_options: Any) -> str:
        """Return the text of some ids."""
        return "".join(chr(FIRST_CHARACTER + int(number)) for number in ids)

    def __call__(self, text: str, *_: Any, **_options: Any) -> dict[str, list[int]]:
        """Return the ids of a text as some libraries do."""
        return {"input_ids": self.encode(text)}


def known(components: Mapping[int, Any], handle: object) -> Any:
    """Return the component of a handle. Raises RequestError."""
    if handle not in components:
        message = f"there is no component with handle {handle!r}"
        raise RequestError(message)
    return components[handle]  # type: ignore[index]
