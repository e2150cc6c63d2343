"""Arguments of constructors and calls: templates whose values are known only once sizes or arrays are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import names
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.binding.selectors import read_index
from conformkit.conformance.binding.toml_nodes import Node

__all__ = [
    "DTYPES",
    "GLOBALS",
    "Arguments",
    "Expression",
    "is_built",
    "read_argument",
    "read_arguments",
    "read_extents",
    "read_globals",
    "read_named",
    "used_by",
]

DTYPES = ("float64", "float32", "float16", "bfloat16")
GLOBALS = "$globals"
"""The name under which a constructor's arguments hold globals of its module: no argument can be called so."""
MAX_NESTING = 8
_SPECIAL = {"object", "lookup"}
"""A table with such a key is not a dictionary."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, evaluated once its names have values."""

    text: str


@dataclass(frozen=True, slots=True)
class _Object:
    """What a class or function returns; `then`: what that returns, or its `method`; `output`: a part of it.

    `by_class`: what the class of that makes of the same arguments.
    """

    path: str
    arguments: Arguments
    method: str | None = None
    then: Arguments | None = None
    output: int | str | None = None
    by_class: bool = False

    def template(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return it as the driver takes it; raise ExpressionError if an expression has no value."""
        args, kwargs = self.arguments.template(values)
        found: dict[str, Any] = {"$object": self.path, "args": args, "kwargs": kwargs}
        if self.by_class:
            found["by_class"] = True
        if self.then is not None:
            args, kwargs = self.then.template(values)
            found["then"] = {"args": args, "kwargs": kwargs, "method": self.method}
        return found if self.output is None else {**found, "output": self.output}


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and named arguments whose values are known only once sizes or arrays are."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    listed: bool = field(default=False, compare=False)
    """Whether the named ones were written as a table at the end of a list."""

    def template(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `args` and `kwargs` as the driver takes them; raise ExpressionError if an expression has no value."""
        return [_filled(a, values) for a in self.positional], {n: _filled(a, values) for n, a in self.named.items()}

    def names(self) -> frozenset[str]:
        """Return the names of the values that are used."""
        return frozenset(_used([*self.positional, *self.named.values()]))

    def settled(self, values: Mapping[str, str]) -> Arguments:
        """Return arguments of which those within objects and dictionaries have these values in place of names."""
        return Arguments(
            tuple(_settled(value, values, inside=False) for value in self.positional),
            {name: _settled(value, values, inside=False) for name, value in self.named.items()},
        )

    def argument_names(self) -> frozenset[str]:
        """Return the names of the arguments themselves, those of objects and dictionaries among them included."""
        return frozenset(_argument_names([*self.positional, self.named]))

    def passed(self) -> frozenset[str]:
        """Return the names of the values that are arguments by themselves, not entries of a settings object."""
        return frozenset(_used(a for a in (*self.positional, *self.named.values()) if isinstance(a, Expression)))

    def paths(self) -> Iterator[str]:
        """Yield the names of the objects that are built or looked up for them."""
        yield from _looked_up([*self.positional, *self.named.values()])

    def but(self, changes: Arguments) -> Arguments:
        """Return these with other named arguments; a positional argument of that name is replaced."""
        rest = dict(changes.named)
        positional = tuple(rest.pop(a.text, a) if isinstance(a, Expression) else a for a in self.positional)
        return Arguments(positional, {**self.named, **rest})

    def setting(self, name: str, value: str | bool, *, own: bool) -> Arguments:
        """Return these with one more constant: an argument of their `own`, or else of the objects that they build."""
        if own or not any(isinstance(argument, _Object) for argument in (*self.positional, *self.named.values())):
            return self.but(Arguments(named={name: value}))
        positional = tuple(_set(argument, name, value) for argument in self.positional)
        return Arguments(positional, {n: _set(argument, name, value) for n, argument in self.named.items()})


def is_built(argument: Any) -> bool:
    """Whether it is an object that is built or looked up, or a number format."""
    return isinstance(argument, _Object) or (isinstance(argument, dict) and bool({"$name", "$dtype"} & argument.keys()))


def used_by(argument: Any) -> frozenset[str]:
    """Return the names of the values that one argument uses."""
    return frozenset(_used([argument]))


def _settled(argument: Any, values: Mapping[str, str], *, inside: bool) -> Any:
    if isinstance(argument, Expression):
        text = argument.text
        used = names(text) & values.keys() if inside else ()
        for name in used:
            text = re.sub(rf"\b{name}\b", values[name], text)
        return Expression(text) if used else argument
    if isinstance(argument, _Object):
        of_object = argument.arguments
        positional = tuple(_settled(value, values, inside=True) for value in of_object.positional)
        named = {name: _settled(value, values, inside=True) for name, value in of_object.named.items()}
        return replace(argument, arguments=Arguments(positional, named))
    if isinstance(argument, Mapping) and not any(str(key).startswith("$") for key in argument):
        return {key: _settled(value, values, inside=True) for key, value in argument.items()}
    return argument


def _argument_names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        inner = value.arguments if isinstance(value, _Object) else value
        if isinstance(inner, Arguments):
            yield from _argument_names([*inner.positional, inner.named])
        elif isinstance(inner, Mapping):
            yield from (str(name) for name in inner)
            yield from _argument_names(inner.values())


def _set(argument: Any, name: str, value: str | bool) -> Any:
    if not isinstance(argument, _Object):
        return argument
    return replace(argument, arguments=argument.arguments.but(Arguments(named={name: value})))


def _filled(argument: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(argument, Expression):
        return _listed(evaluate(argument.text, values))
    if isinstance(argument, _Object):
        return argument.template(values)
    if isinstance(argument, list):
        return [_filled(a, values) for a in argument]
    if isinstance(argument, dict):
        return {key: _filled(a, values) for key, a in argument.items()}
    return argument


def _listed(value: Any) -> Any:
    """Templates are JSON: there are no tuples."""
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def _used(arguments: Iterable[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, Expression):
            yield from names(argument.text)
        elif isinstance(argument, _Object):
            yield from argument.arguments.names() | (argument.then or Arguments()).names()
        elif isinstance(argument, (list, dict)):
            yield from _used(argument.values() if isinstance(argument, dict) else argument)


def _looked_up(arguments: Iterable[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, _Object):
            yield argument.path
            yield from argument.arguments.paths()
            yield from (argument.then or Arguments()).paths()
        elif isinstance(argument, dict) and "$name" in argument:
            yield argument["$name"]
        elif isinstance(argument, (list, dict)):
            yield from _looked_up(argument.values() if isinstance(argument, dict) else argument)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_arguments(node: Node, known: Iterable[str], depth: int = 0) -> Arguments:
    """Read a list (positional, its last element may be a table of named ones) or a table of named arguments."""
    if isinstance(node.value, dict):
        return Arguments((), read_named(node, known, depth))
    items = node.items()
    named = read_named(items.pop(), known, depth) if items and _is_named(items[-1].value) else {}
    return Arguments(tuple(_argument(item, known, depth) for item in items), named, listed=True)


def read_extents(node: Node, known: Iterable[str]) -> list[Any]:
    """Read the shape of an array: numbers, and expressions over sizes."""
    return [_argument(item, known, 0) for item in node.items()]


def read_argument(node: Node, known: Iterable[str]) -> Arguments:
    """Read one argument, such as an object to build."""
    return Arguments((_argument(node, known, 0),), {})


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not (_SPECIAL & value.keys() or _is_dtype(value))


def _is_dtype(table: Mapping[str, Any]) -> bool:
    """Whether a table says `{ dtype = "float32" }`; with other keys, or a quoted text, it is one with a key `dtype`."""
    return table.keys() == {"dtype"} and not str(table["dtype"]).startswith(("'", '"'))


def read_named(node: Node, known: Iterable[str], depth: int = 0) -> dict[str, Any]:
    """Read a table of named arguments."""
    found = {}
    for name, value in node.table().items():
        if not name.isidentifier():
            raise value.error(f"{shown(name)} cannot be the name of an argument")
        found[name] = _argument(value, known, depth)
    return found


def read_globals(node: Node, known: Iterable[str]) -> Arguments:
    """Read globals of a module with their values; `cfg.n_embd` is one within an object or a dictionary."""
    found: dict[str, Any] = {}
    for name, value in node.table().items():
        if not all(part.isidentifier() for part in name.split(".")):
            raise value.error(f"{shown(name)} cannot be the name of a global")
        if isinstance(value.value, (list, dict)):
            raise value.wrong("a string, a number, true or false")
        found[name] = _argument(value, known, 0)
    return Arguments((), found)


def _argument(node: Node, known: Iterable[str], depth: int) -> Any:
    if depth > MAX_NESTING:
        raise node.error(f"it is nested more than {MAX_NESTING} deep")
    if isinstance(node.value, str):
        return Expression(node.expression(known, "put quotes inside the string: \"'gelu'\""))
    if isinstance(node.value, (bool, int, float)):
        if not abs(node.value) < 2**63:
            raise node.error("a number is not finite, or larger than 2 ** 63")
        return node.value
    if isinstance(node.value, list):
        return [_argument(item, known, depth + 1) for item in node.items()]
    if not isinstance(node.value, dict):
        raise node.wrong("a string, a number, true or false, a list or a table")
    return _special(node, known, depth)


def _object(node: Node, known: Iterable[str], depth: int) -> _Object:
    tables = node.table(("object", "arguments", "method", "call", "output"))
    inner, then = (
        read_arguments(tables[key], known, depth + 1) if key in tables else None for key in ("arguments", "call")
    )
    method = tables["method"].text(200) if "method" in tables else None
    if method is not None and not method.isidentifier():
        raise tables["method"].error(f"{shown(method)} cannot be the name of a method")
    then = Arguments() if then is None and method is not None else then
    output = read_index(tables["output"]) if "output" in tables else None
    return _Object(tables["object"].attribute(), inner or Arguments(), method, then, output)


def _special(node: Node, known: Iterable[str], depth: int) -> Any:
    """Read a table given as a value: an object to build, a name to look up, a dtype, or a dictionary."""
    if "object" in node.value:
        return _object(node, known, depth)
    if "lookup" in node.value:
        return {"$name": node.table(("lookup",))["lookup"].attribute()}
    if _is_dtype(node.value):
        dtype = node.table()["dtype"].choice((*DTYPES, "int64", "bool", *({"dtype"} & set(known))))
        return {"$dtype": Expression(dtype) if dtype == "dtype" else dtype}
    for key, value in node.table().items():
        if key.startswith("$"):
            raise value.error("a key cannot begin with $ here")
    return {key: _argument(value, known, depth + 1) for key, value in node.table().items()}
