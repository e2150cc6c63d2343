"""`parameters`: the weights that a function gets as arguments: who makes them, or their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression, read_argument, read_arguments, read_extents
from conformkit.conformance.binding.limits import NUMBERS, SIZE_NAMES
from conformkit.conformance.binding.signatures import Signature, call_from
from conformkit.conformance.binding.toml_nodes import Node

__all__ = ["PARAMETERS", "SOURCES", "USUAL", "call_with", "has_shapes", "keys_of", "made_with", "read_parameters"]

PARAMETERS = "parameters"
"""What a call names to pass all of them."""
SOURCES = ("seed", "rng")
"""What init may get besides sizes: a whole number, or NumPy's generator."""
USUAL = ("params", "parameters", "weights", "theta", "p", "w", "state", "variables", "param", "ws")
"""What the argument that takes all of them is called."""
_KNOWN = (*SIZE_NAMES, "dtype", *SOURCES)


def read_parameters(node: Node) -> Arguments:
    """Read who makes the weights: an object, a table with a shape for each, or a list of the arguments of init."""
    if isinstance(node.value, list):
        return read_arguments(node, _KNOWN)
    if isinstance(node.value, dict) and not {"object", "lookup"} & node.value.keys():
        return Arguments((_shaped(node),), {})
    return read_argument(node, _KNOWN)


def _shaped(node: Node) -> Any:
    """Read a table: a list is the shape of an array, a table inside is a dictionary, anything else a value."""
    if isinstance(node.value, dict) and not {"object", "lookup", "dtype"} & node.value.keys():
        return {key: _shaped(inner) for key, inner in node.table().items()}
    if isinstance(node.value, list):
        return {"$shape": read_extents(node, _KNOWN)}
    return read_argument(node, _KNOWN).positional[0]


def made_with(parameters: Arguments | None) -> Arguments | None:
    """Return what could be an excuse: the arguments of who makes the weights, and values among them; no shapes."""
    if parameters is None or not parameters.positional:
        return parameters
    first = parameters.positional[0]
    if isinstance(first, Mapping):
        return Arguments((), {key: value for key, value in first.items() if not _has_shape(value)})
    inner = getattr(first, "arguments", None)
    return inner if isinstance(inner, Arguments) else parameters


def has_shapes(parameters: Arguments) -> bool:
    """Whether their numbers are the kit's, since only shapes are declared."""
    return any(map(_has_shape, parameters.positional))


def _has_shape(value: Any) -> bool:
    return isinstance(value, Mapping) and ("$shape" in value or any(map(_has_shape, value.values())))


def keys_of(parameters: Arguments) -> frozenset[str]:
    """Return the names of the arguments that get one entry each, as far as the file says them."""
    first = parameters.positional[0] if parameters.positional else None
    return frozenset(first) if isinstance(first, Mapping) and "$shape" not in first else frozenset()


def call_with(parameters: Arguments, signature: Signature, contract: Iterable[str], required: set[str]) -> Arguments:
    """Return how a function with weights as arguments is called: inputs, sizes and weights by their names.

    Raises SignatureMismatch if an argument has no value.
    """
    own = keys_of(parameters)
    whole = next((p["name"] for p in signature if p["name"] in USUAL and p["name"] not in own), None)
    sizes = {p["name"]: meaning(p["name"], NUMBERS) for p in signature if p["required"] and p["name"] not in own}
    given = {name: ours for name, ours in sizes.items() if ours} | ({whole: PARAMETERS} if whole else {})
    rest = [p for p in signature if p["name"] not in own and p["name"] not in given]
    found = call_from(rest, list(contract), required)
    places = [p["name"] for p in rest if p["kind"] == "positional"]
    named = dict(zip(places, found.positional, strict=False)) | dict(found.named)
    return Arguments((), named | {theirs: Expression(ours) for theirs, ours in given.items()})
