"""What `conform.toml` declares about one tool, for example `[components.get_batch]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.arguments import Arguments, Expression, read_arguments, read_globals
from conformkit.conformance.binding.masks import MaskForm, read_form
from conformkit.conformance.binding.selectors import Selector, read_selector
from conformkit.conformance.binding.toml_nodes import Node
from conformkit.spec.components import Argument
from conformkit.spec.tools import FUNCTION, TOOLS, ToolContract

__all__ = ["ARRAYS", "MAX_ID", "MethodConfig", "ToolConfig", "read_tool"]

ARRAYS = ("tensor", "array", "list")
_TAKES, _RETURNS = ("log probabilities",), ("sum",)
MAX_ID = 400
"""The largest id that a tool may have as a number of its code: larger ones are text in what it is judged with."""


@dataclass(frozen=True, slots=True)
class MethodConfig:
    """How one method is called. None: not declared, determined automatically."""

    path: str | None = None
    call: Arguments | None = None
    output: Selector = None


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """What is declared about one tool. None: not declared, determined automatically."""

    name: str
    path: str | None = None
    skip: bool = False
    """Leave it out of the run, which its verdict says."""
    factory: bool = False
    """`path` is a function that returns the object when called with `construct`."""
    construct: Arguments | None = None
    call: Arguments | None = None
    globals: Arguments | None = None
    """What a function reads from its module in place of arguments."""
    output: Selector = None
    mask: MaskForm | None = None
    """The kind of entries of the masks that it returns, and what True means in them."""
    arrays: str | None = None
    """How arrays are passed: as the framework's tensors, as NumPy arrays or as lists."""
    logits: str = ""
    """What a loss takes in place of logits: their "log probabilities"."""
    reduction: str = ""
    """What a loss returns in place of the mean: the "sum"."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Numbers that the code has in place of arguments: the tool is judged with them."""
    stride: Arguments | None = None
    """How far windows lie apart, where not one begins at each id."""
    methods: Mapping[str, MethodConfig] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


def read_tool(name: str, node: Node) -> ToolConfig:
    """Read the table of one tool."""
    tool = TOOLS[name]
    readers: dict[str, Any] = {
        "path": Node.attribute,
        "skip": Node.flag,
        "output": read_selector,
        "arrays": lambda n: n.choice(ARRAYS),
        **(_of_function(tool) if tool.construct is None else _of_class(tool, tool.construct)),
        **({"mask": _mask} if tool.masks else {}),
        **({"logits": lambda n: n.choice(_TAKES), "reduction": lambda n: n.choice(_RETURNS)} if tool.averages else {}),
        **({"limits": lambda n: _numbers(n, tool.limited)} if tool.limited else {}),
        **({"globals": lambda n: read_globals(n, tool.names(tool.calls[FUNCTION]))} if tool.construct is None else {}),
    }
    return ToolConfig(name, **{key: readers[key](value) for key, value in node.table(readers).items()})


def _of_function(tool: ToolContract) -> dict[str, Any]:
    names = tool.names(tool.calls[FUNCTION])
    made = {"construct": lambda n: read_arguments(n, names), "factory": Node.flag} if tool.made else {}
    made |= {"stride": lambda n: Arguments((Expression(n.expression(names)),), {})} if tool.texts else {}
    return {"call": lambda n: read_arguments(n, names), **made}


def _of_class(tool: ToolContract, construct: Iterable[Argument]) -> dict[str, Any]:
    names, calls = tool.names(construct), tool.calls
    made: dict[str, Any] = {"factory": Node.flag, "construct": lambda n: read_arguments(n, names)}
    if FUNCTION in calls:
        return made | _of_function(tool)
    return made | {
        "methods": lambda n: {m: _method(value, calls[m]) for m, value in n.table(calls, "method").items()},
        "attributes": lambda n: {a: v.text(200) for a, v in n.table(tool.attributes, "attribute").items()},
    }


def _numbers(node: Node, names: Iterable[str]) -> dict[str, Any]:
    """Read ids, or lists of ids, by the arguments in whose place the code has them."""
    ids = node.table(names, "argument").items()
    return {
        name: [_id(item) for item in value.items()] if isinstance(value.value, list) else _id(value)
        for name, value in ids
    }


def _id(node: Node) -> int:
    return node.whole(0, MAX_ID)


def _mask(node: Node) -> MaskForm:
    return read_form(node, MaskForm(), ("bool", "float", "int"))


def _method(node: Node, arguments: Iterable[Argument]) -> MethodConfig:
    names = [a.name for a in arguments]
    readers: dict[str, Any] = {
        "path": lambda n: n.text(200), "call": lambda n: read_arguments(n, names), "output": read_selector,
    }  # fmt: skip
    return MethodConfig(**{key: readers[key](value) for key, value in node.table(readers).items()})
