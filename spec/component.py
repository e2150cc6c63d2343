"""The contract of a component: how it is constructed and called, its methods, its parameters, its oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights
from conformkit.spec.parameters import Parameter, Sizes
from conformkit.spec.variants import BASES, CANONICAL, Variant

__all__ = ["DROPOUT", "Argument", "Component", "Method", "heads", "required"]

Inputs = Mapping[str, Array]
Forward = Callable[[Weights, Inputs, Sizes, Variant], Array]
Extent = Callable[[Inputs, Sizes], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the contract; `required` when it has no default."""

    name: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a component that takes arrays and returns one: its inputs, other names for it, its oracle, shape.

    `options` are its arguments that are not arrays; `outputs` is the number of arrays it returns. Without an oracle or
    a shape, tests define the expected result. What the call itself returns besides its first result, as a pair, is also
    described here: `beside` is its place.
    """

    name: str
    inputs: tuple[str, ...]
    further: tuple[str, ...] = ()
    forward: Forward | None = None
    extent: Extent | None = None
    options: tuple[Argument, ...] = ()
    outputs: int = 1
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """A component as its Protocol describes it.

    `inputs` are the names of the call's arrays; those that end in `mask` may be omitted. `parameters` gives the
    canonical parameters of an instance, `forward` is the oracle. It belongs to `profile`; `further` are other export
    names, tried in order. `extent` is the shape of its output if that is not the first input's. A result of it,
    with two layers of each kind, passes through `depth` components that add rounding of their own.
    """

    name: str
    export: str
    prefix: str
    required: bool
    arguments: tuple[Argument, ...]
    inputs: tuple[str, ...]
    parameters: Callable[[Sizes, Variant], dict[str, Parameter]]
    forward: Forward
    profile: str = "core"
    further: tuple[str, ...] = ()
    methods: tuple[Method, ...] = ()
    extent: Extent | None = None
    depth: int = 1

    @property
    def several(self) -> bool:
        """Whether calls may have several arrays, whose masks say which positions are padding."""
        return self.profile in {"seq2seq", "encoder", "vit"}

    @property
    def base(self) -> Variant:
        """The choices that are canonical for it."""
        return BASES.get(self.profile, CANONICAL)

    @property
    def is_language_model(self) -> bool:
        """Whether it is a decoder alone, which continues the ids that it is called with."""
        return any(argument.name == "block_size" for argument in self.arguments)

    @property
    def is_causal(self) -> bool:
        """Whether positions may see earlier ones alone, in calls with one sequence each."""
        return not self.several and (self.is_language_model or any(a.name == "causal" for a in self.arguments))

    @property
    def decodes(self) -> bool:
        """Whether its result is what a whole model says of the next id."""
        return self.is_language_model or any(argument.name == "tgt_vocab_size" for argument in self.arguments)

    def method(self, name: str) -> Method:
        """Return one of its methods."""
        return next(method for method in self.methods if method.name == name)


DROPOUT = Argument("dropout", 0.0)
"""An argument that most components have."""


def required(*names: str) -> tuple[Argument, ...]:
    """Return arguments of these names that have no default."""
    return tuple(Argument(name, required=True) for name in names)


def heads(sizes: Sizes) -> dict[str, Any]:
    """Return the numbers of heads, as the attention oracles take them."""
    return {"num_heads": sizes["num_heads"], "kv_heads": sizes["kv_heads"]}
