"""One component of the implementation: how to construct and call it, where its weights are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NoValue, OtherParameters, WeightsUnknown
from conformkit.conformance.binding.arguments import GLOBALS, Arguments, Expression
from conformkit.conformance.binding.call_arguments import ArgumentNames
from conformkit.conformance.binding.calls import BoundMethod
from conformkit.conformance.binding.config import ComponentConfig, MaskConfig
from conformkit.conformance.binding.further import Further, Plain
from conformkit.conformance.binding.generation import Generation
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.masks import FORMS, MASKS, MaskForm, formed, hiding_nothing, masks_of, queries_of
from conformkit.conformance.binding.parameters import PARAMETERS
from conformkit.conformance.binding.patterns import to_canonical, to_implementation
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.driver.wire.arrays import FOREMOST
from conformkit.spec.arrays import Array
from conformkit.spec.components import FURTHER, LOGITS, Component, Sizes
from conformkit.spec.tolerances import Precision
from conformkit.spec.variants import Variant

__all__ = ["HELD_POSITIONS", "Bound", "set_only"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A component of the contract, tied to what the implementation exports.

    It never changes: `bind_export` makes it from signatures and declarations, `probe` returns another one with what
    only a trial can show. `offers` names abilities; `rules` say where canonical weights are, None if that is unknown,
    for the reason `unbound`; `failure` is what the first attempt to build and call it met.
    """

    component: Component
    path: str
    config: ComponentConfig
    variant: Variant
    limits: SizeLimits
    construct: Arguments
    call: Arguments
    causal: str
    mask: MaskConfig
    generation: Generation | None
    offers: Mapping[str, bool] = field(default_factory=dict)
    dtype: str = "float64"
    precision: Precision = "float64"
    rules: tuple[Rule, ...] | None = ()
    unbound: tuple[str, ...] = ()
    same_count: bool = False
    """Unbound, but with as many numbers as the definition has: it cannot be called wrong."""
    adapters: tuple[str, ...] = ()
    """Unbound, and these are low-rank matrices beside those of the definition: what they add is not judged."""
    guess: tuple[Rule, ...] = ()
    """Where the weights may be, if they are unbound: the most plausible of several."""
    fits: bool = False
    """Whether the definition, with the weights found, reproduced the implementation's output."""
    error: float = math.inf
    """How far the definition's output was from the implementation's, relative to the largest number."""
    failure: DriverError | None = None
    grows: bool = False
    """Its first call makes parameters: each instance is called once before it is used."""
    notes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    """Patterns of arrays that turned out not to be parameters, where only a trial can tell."""
    weights_output: int | str | None = None
    boolean: frozenset[str] = frozenset()
    """Arguments of the call that its documentation calls Boolean, by the implementation's names."""
    masks: Mapping[str, MaskForm] = field(default_factory=lambda: FORMS)
    """How the masks of an encoder-decoder are passed, by their names in a call."""
    insisted: frozenset[str] = frozenset()
    """Arguments of the call without a default: None is passed if the contract leaves them out."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What its call passes where it leaves out what may be a mask; see `calls.unread`."""
    methods: Mapping[str, BoundMethod] = field(default_factory=dict)
    """By the contract's name."""
    found: Mapping[str, Range] = field(default_factory=dict)
    """Limits that are not declared: rules by which it refuses sizes, which its limits hold too."""
    declared: frozenset[str] = frozenset()
    """Names of the choices that conform.toml makes for it."""
    exempted: Mapping[str, str] = field(default_factory=dict)
    """Abilities that it would have without a declaration, with the key that takes each away."""
    concealed: tuple[str, ...] = ()
    """Trainable parameters that conform.toml ignores: they are not written, and counted all the same."""
    contradicted: bool = False
    """Whether it returns other numbers of the output's shape, or of its positions, before the declared output."""
    splits: bool = False
    """Whether it takes a batch with other numbers than one sequence after the other, as it is declared to be called."""
    further: tuple[Further, ...] = ()
    """Arguments with a default that it gets and that no caller of the contract passes."""
    by_position: Mapping[str, Arguments] = field(default_factory=dict)
    """`construct` and `call` as callers of the contract pass them, where they are passed by name and it could tell."""
    by_default: tuple[tuple[str, Plain], ...] = ()
    """The same, and those of methods, without what no caller of the contract passes."""
    call_arguments: ArgumentNames = field(default_factory=ArgumentNames)
    """Further arguments that the call of a language model takes."""
    generation_stub: str = ""
    """The line where its generation raises NotImplementedError for any input."""

    # -- parameters --------------------------------------------------------------------------------------------

    def ignored(self, name: str) -> bool:
        """Whether a parameter is a constant that is neither written nor counted: declared, or found to be one."""
        return self.config.ignores(name) or any(fnmatchcase(name, pattern) for pattern in self.constants)

    def conceals(self, name: str) -> bool:
        """Whether conform.toml ignores a parameter that no trial has found to be a constant."""
        return self.config.ignores(name) and not any(fnmatchcase(name, pattern) for pattern in self.constants)

    def require_weights(self) -> None:
        """Raise ClauseFailure, with both sides listed, if the weights could not be bound.

        Raises WeightsUnknown instead if they may be right, since nobody knows which is which.
        """
        if self.rules is None and (self.same_count or self.adapters):
            raise WeightsUnknown(f"binding unsure: the weights of {self.component.name} could not be bound")
        if self.rules is None:
            raise OtherParameters(self.component.name, *self.unbound)

    def to_implementation(self, weights: Mapping[str, Array], sizes: Sizes) -> dict[str, Array]:
        """Return their arrays for canonical weights."""
        self.require_weights()
        return to_implementation(self.rules or (), weights, self.component.parameters(sizes, self.variant), sizes)

    def to_canonical(self, theirs: Mapping[str, Array], sizes: Sizes) -> dict[str, Array]:
        """Return canonical weights from their arrays."""
        self.require_weights()
        return to_canonical(self.rules or (), theirs, self.component.parameters(sizes, self.variant), sizes)

    # -- requests ----------------------------------------------------------------------------------------------

    def build_request(self, sizes: Sizes, *, dtype: str, seed: int) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the driver's request that constructs an instance, with a sample call for lazily created parameters."""
        values = {**sizes, "dtype": dtype, "seed": seed, "rng": {"$rng": True}}
        tensors = self._held_mask(sizes, dtype)
        values |= {name: _tensor(name, array, strided=False, cast=None) for name, array in tensors.items()}
        args, kwargs = _filled(set_only(self.construct, values), {"d_k": None, "d_v": None, **values})
        header = {
            "op": "build", "component": self.component.name, "path": self.path, "args": args, "kwargs": kwargs,
            "dtype": dtype, "seed": seed, "factory": self.config.factory,
        }  # fmt: skip
        if GLOBALS in kwargs:
            header["globals"] = {"module": self.path.partition(":")[0], "values": kwargs.pop(GLOBALS)}
        if self.config.head is not None:
            header["head"] = self._outside_head(values)
        if self.config.parameters is None:
            return header, tensors
        args, kwargs = _filled(set_only(self.config.parameters, values), values)
        header["parameters"] = {"args": args, "kwargs": kwargs, "spread": PARAMETERS not in self.call.names()}
        return header, tensors

    def _outside_head(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is applied to the states that a model returns, and where in its result these are."""
        head = self.config.head
        states = {"output": self.config.output if not isinstance(self.config.output, tuple) else self.config.output[0]}
        if isinstance(head, str):
            return {"matrix": head, **states}
        assert head is not None
        (made,), _ = _filled(set_only(head, values), values)
        return {"made": made, **states}

    def _held_mask(self, sizes: Sizes, dtype: str) -> dict[str, Array]:
        """Return the mask that a constructor takes and calls cut to their length; one that hides nothing if asked."""
        if "mask" not in self.construct.names():
            return {}
        longest = sizes.get("block_size") or self.limits.of("tokens").max or HELD_POSITIONS
        seen = np.ones((longest, longest), np.bool_)
        mask = self._mask(np.tril(seen) if sizes.get("causal", True) else seen, 1, 1)
        if mask.dtype.kind == "f":
            mask = mask.astype(np.float64 if dtype == "float64" else np.float32)
        return {"mask": mask}

    def call_request(
        self, inputs: Mapping[str, Array], values: Mapping[str, Any], *, strided: bool = False, cast: str | None = None,
        method: str | None = None,
    ) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
        """Return the driver's request for one call with the contract's inputs.

        `cast` is the number format in which they arrive, for one that does not cross the wire.
        """
        if self.component.several:
            return self._call_of_several(inputs, values, strided=strided, cast=cast, method=method)
        batch = next((a.shape[0] for a in inputs.values() if a.ndim > 1), 1)
        heads = values.get("num_heads") or next((a.shape[1] for a in inputs.values() if a.ndim == _WITH_HEADS), 1)
        arrays = {
            name: self._mask(a, batch, heads) if name == "mask" else self._swapped(a) for name, a in inputs.items()
        }
        used = self.call.names()
        arrays = {name: a for name, a in arrays.items() if name in used}
        known = {name: _tensor(name, a, strided=strided, cast=cast) for name, a in arrays.items()}
        known |= _HELD
        args, kwargs = _filled(set_only(self.call, {**known, **values}), {"mask": None, **values, **known})
        header = {"args": args, "kwargs": kwargs, "output": self._selector()}
        return header | self._each({name: a for name, a in inputs.items() if name in used}), arrays

    def _call_of_several(
        self, inputs: Mapping[str, Array], values: Mapping[str, Any],
        *, strided: bool, cast: str | None, method: str | None,
    ) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
        """Return the request for a call with several arrays, or of a method; masks in the implementation's form."""
        bound = self.methods[method] if method else BoundMethod("", self.call, self.insisted, self._selector())
        used = bound.call.names()
        given = {name: a for name, a in inputs.items() if name in MASKS}
        asked = {a.text for n, a in bound.call.named.items() if n in bound.insisted and isinstance(a, Expression)}
        lacking = (asked & set(MASKS)) - masks_of(given, used).keys()  # the memory's may be the source's
        masks = masks_of({**{n: hiding_nothing(n, inputs) for n in lacking}, **given}, used)
        heads = values.get("num_heads") or 1
        arrays = {
            n: formed(mask, self.masks[n], queries=queries_of(n, inputs), heads=heads) for n, mask in masks.items()
        }
        arrays |= {name: self._swapped(a) for name, a in inputs.items() if name not in MASKS and name in used}
        known: dict[str, Any] = {name: _tensor(name, a, strided=strided, cast=cast) for name, a in arrays.items()}
        known |= _HELD | ({"model": {"$self": True}} if ":" in bound.name else {})
        options = self.component.method(method).options if method else ()
        empty = {**dict.fromkeys(FORMS), **{option.name: option.default for option in options}}
        chosen = set_only(bound.call, {**known, **values}, keep=bound.insisted)
        args, kwargs = _filled(chosen, {**empty, **values, **known})
        output = list(bound.output) if isinstance(bound.output, tuple) else bound.output
        header = {"args": args, "kwargs": kwargs, "output": output} | self._each(arrays)
        return header | (_entry(bound.name) if method and bound.name else {}), arrays

    def generate_request(
        self, ids: Array, count: int, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the driver's request that generates; `greedy` asks for it in the implementation's own way.

        `options` also hold the sizes and the seed, for calls that mention them.
        """
        assert self.generation is not None
        values = {name: value for name, value in options.items() if name != "greedy"}
        call = self.generation.call
        if options.get("greedy"):
            call, values = call.but(self.generation.greedy), {**values, **self.generation.certain}
        prompt = {"$list" if self.generation.prompts == "lists" else "$tensor": "ids"}
        known = {"ids": prompt, "max_new_tokens": count, "T": ids.shape[-1], "model": {"$self": True}}
        known |= {"model": {"$self": "model"}, "head": {"$self": "head"}} if self.config.head is not None else {}
        known |= {**values, **_HELD}
        defaults = {"temperature": 1.0, "top_k": None, "top_p": None, "eos_id": None, "use_cache": False, "seed": 0}
        defaults |= {argument.name: argument.default for argument in FURTHER}
        args, kwargs = _filled(set_only(call, known), {**defaults, **known})
        header = {"op": "call", "args": args, "kwargs": kwargs, "output": None, "ids": True}
        each = self._each({"ids": ids}) or self._prompts(ids)
        header |= {"method": self.generation.method, "function": self.generation.function, **each}
        return header, {"ids": self._swapped(ids)}

    def _prompts(self, ids: Array) -> dict[str, Any]:
        """Say that generation is called for each prompt, where it takes one."""
        alone = self.generation is not None and self.generation.prompts != "batch"
        return {"each": ["ids"], "empty": not len(ids)} if alone else {}

    def generated(self, out: Array, prompt: Array) -> Array:
        """Return prompt and new ids as (B, T + n), whatever the implementation returns."""
        out = self._swapped(out)
        assert self.generation is not None
        if self.generation.new_only and not out.size:
            return prompt.copy()  # an empty list has no rows
        if self.generation.new_only and out.ndim == prompt.ndim:
            return np.concatenate([prompt, out.astype(prompt.dtype)], axis=-1)
        return out

    def _selector(self) -> Any:
        output, weights = None if self.config.head is not None else self.config.output, self.weights_output
        if output is None and weights is None and self.component.name not in LOGITS:
            return FOREMOST
        if weights is None:
            return output if not isinstance(output, tuple) else list(output)
        first = output[0] if isinstance(output, tuple) else output
        return [0 if first is None else first, weights]

    # -- layouts -----------------------------------------------------------------------------------------------

    def leading(self, batch: int) -> tuple[int, ...]:
        """The leading dimensions of attention inputs: (batch,), or (batch, 2) if four dimensions are required."""
        return (batch, 2) if self.limits.rank == 4 else (batch,)

    def from_theirs(self, array: Array) -> Array:
        """Transpose an output to (B, T, …)."""
        return self._swapped(array)

    def to_theirs(self, array: Array) -> Array:
        """Transpose (B, T, …) to the implementation's order of axes."""
        return self._swapped(array)

    def _swapped(self, array: Array) -> Array:
        if self.config.layout == "sequence first" and array.ndim > 1:
            return np.ascontiguousarray(np.swapaxes(array, 0, 1))
        return array

    def _each(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Say which arrays of a call have a batch axis that the implementation has not: it is called for each entry."""
        if self.config.layout != "one sequence":
            return {}
        shared = {"positions", "position_ids", *(name for name, form in self.masks.items() if form.shape == "T T")}
        of_masks = 1 if self.component.several else 3  # (Tq, Tk) is for all sequences
        each = [
            name for name, array in arrays.items()
            if name not in shared
            and array.ndim >= (of_masks if name in self.masks else 2 if array.dtype.kind in "iu" else 3)
        ]  # fmt: skip
        batch = len(arrays[each[0]]) if each else 0
        return {"each": each, "empty": not batch} if each else {}

    def _mask(self, mask: Array, batch: int, heads: int) -> Array:
        """Convert a mask (True = may attend) to the declared kind, polarity and shape."""
        if mask.dtype == np.bool_:
            mask = self.mask.form.passed(mask)
        if mask.ndim == 2:
            for _ in range(self.mask.shape.split().index("T")):
                mask = mask[None]
            if self.mask.shape.endswith(" 1"):
                mask = mask[..., None]
            if self.mask.shape.startswith("B"):
                mask = np.repeat(mask, batch, axis=0)
            if self.mask.shape.startswith("B H"):
                mask = np.repeat(mask, heads, axis=1)
        return mask


HELD_POSITIONS = 1024
"""Positions for which a constructor gets a mask."""
_WITH_HEADS = 4
"""Axes of queries and keys that have heads: (B, H, T, dk)."""


def _entry(name: str) -> dict[str, str]:
    """Say what is called: a method, or a function given as a path with a colon."""
    return {"function": name} if ":" in name else {"method": name}


def _filled(arguments: Arguments, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments as the driver takes them. Raises NoValue if a declared one has none."""
    try:
        return arguments.template(values)
    except ExpressionError as error:
        raise NoValue(f"an argument that it is called or built with has no value: {error}") from None


def _tensor(name: str, array: Array, *, strided: bool, cast: str | None) -> dict[str, Any]:
    """Return the template of an input; a floating format is for floating inputs, an integer one for integers."""
    template: dict[str, Any] = {"$tensor": name, **({"strided": True} if strided else {})}
    fits = cast is not None and array.dtype.kind == ("i" if cast.startswith("int") else "f")
    return template | ({"cast": cast} if fits else {})


_HELD: dict[str, Any] = {PARAMETERS: {"$weights": True}}
"""The weights that a function gets as an argument."""
_IN_PLACE = dict.fromkeys(FORMS, True)


def set_only(arguments: Arguments, values: Mapping[str, Any], keep: frozenset[str] = frozenset()) -> Arguments:
    """Leave out named arguments whose template is just a name without a value, and such positional ones at the end.

    A mask in its place is passed as None: code that takes it by position may require it. Those to `keep` stay.
    """
    named = {
        n: a for n, a in arguments.named.items()
        if n in keep or not (isinstance(a, Expression) and _unset(a.text, values))
    }  # fmt: skip
    positional: Sequence[Any] = arguments.positional
    while (
        positional and isinstance(positional[-1], Expression) and _unset(positional[-1].text, {**_IN_PLACE, **values})
    ):
        positional = positional[:-1]
    return replace(arguments, positional=tuple(positional), named=named)


def _unset(text: str, values: Mapping[str, Any]) -> bool:
    return text.isidentifier() and text not in {"True", "False", "None"} and values.get(text) is None
