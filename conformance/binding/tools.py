"""From what an implementation exports to bound tools: how each is constructed and called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.binding.signatures import (
    Signature,
    SignatureMismatch,
    call_from,
    construct_from,
    named_from,
)
from conformkit.conformance.binding.tool_config import MethodConfig, ToolConfig
from conformkit.spec.components import Argument
from conformkit.spec.tools import FUNCTION, TOOLS, Tool

__all__ = ["BoundCall", "BoundTool", "ToolMismatch", "bind_tool", "tool_targets"]


class ToolMismatch(ValueError):
    """A tool is not constructed or called as the contract says; the text says how it is, and what to declare."""


@dataclass(frozen=True, slots=True)
class BoundCall:
    """How one method is called: its own name (None: the tool is a function), its arguments, what to take from it."""

    method: str | None
    arguments: Arguments
    output: Any
    defaults: Mapping[str, Any]
    """Values of the contract's optional arguments that are passed where a test gives none."""


@dataclass(slots=True)
class BoundTool:
    """A tool of the contract, tied to what the implementation exports."""

    tool: Tool
    path: str
    factory: bool
    construct: BoundCall | None
    calls: Mapping[str, BoundCall]
    attributes: Mapping[str, str]
    arrays: str | None
    """How arrays are handed over, where that is declared."""
    mask: MaskForm = field(default_factory=MaskForm)
    """What returned masks consist of, and what True means in them."""
    offers: dict[str, bool] = field(default_factory=dict)


def tool_targets(config: Config, tools: Iterable[str] = tuple(TOOLS)) -> dict[str, str | None]:
    """Return what to look for: by tool, the declared path or None for the contract's name."""
    found: dict[str, str | None] = {}
    for name in tools:
        path = config.tool(name).path
        found[name] = f"{config.module}:{path}" if path and ":" not in path and config.module else path
    return found


def bind_tool(tool: Tool, export: Mapping[str, Any], config: Config) -> BoundTool:
    """Work out how a tool is constructed and called. Raises ToolMismatch."""
    own = config.tool(tool.name)
    wanted = "class" if tool.construct is not None and not own.factory else "function"
    if (export["kind"] == "class") != (wanted == "class"):
        raise ToolMismatch(f"{export['path']} is a {export['kind']}, want a {wanted}")
    try:
        construct = _construct(tool, export, own)
        calls = {name: _call(tool, name, export, own) for name in tool.calls}
    except SignatureMismatch as mismatch:
        raise ToolMismatch(f"{export['path']} {mismatch}; say in conform.toml how it is called") from None
    attributes = {name: own.attributes.get(name, name) for name in tool.attributes}
    bound = BoundTool(tool, export["path"], own.factory, construct, calls, attributes, own.arrays, own.mask)
    used = {name for call in (construct, *calls.values()) if call is not None for name in call.arguments.names()}
    for name in tool.optional():
        elements = tool.elements.get(name, ())
        bound.offers[name.replace("_", "-")] = name in used or (bool(elements) and used.issuperset(elements))
    return bound


def _construct(tool: Tool, export: Mapping[str, Any], own: ToolConfig) -> BoundCall | None:
    if tool.construct is None:
        return None
    signature = export["call"] if own.factory else export["construct"]
    return _bound(tool, None, own.construct, signature, tool.construct, None)


def _call(tool: Tool, name: str, export: Mapping[str, Any], own: ToolConfig) -> BoundCall:
    declared = own.methods.get(name) or MethodConfig()
    output = own.output if declared.output is None else declared.output
    if name == FUNCTION:
        signature = None if own.factory else export["call"]  # that of the factory says nothing of what it makes
        return _bound(tool, None, own.call, signature, tool.calls[name], output)
    method = declared.path or name
    described = (export["methods"] or {}).get(method)  # a base class of a library has some that are not described
    return _bound(tool, method, declared.call, described, tool.calls[name], output)


def _bound(
    tool: Tool, method: str | None, declared: Arguments | None, signature: Signature | None,
    contract: Sequence[Argument], output: Any,
) -> BoundCall:  # fmt: skip
    """Pass required arguments by name where all their names are known, else by position; optional ones by name."""
    names, required = tool.names(contract), [a.name for a in contract if a.required]
    optional = {a.name: a.default for a in contract if not a.required}
    if declared is not None:
        return BoundCall(method, declared, output, optional)
    if signature is None:
        return BoundCall(method, Arguments(tuple(Expression(name) for name in required), {}), output, {})
    wanted = [meaning(p["name"], names) for p in signature if p["required"]]
    by_name = len(required) > 1 and set(required) <= set(wanted)
    how = construct_from if by_name else named_from if _elsewhere(signature, required) else call_from
    arguments = how(signature, names, set(required))
    return BoundCall(method, arguments, output, {n: v for n, v in optional.items() if _insisted(tool, n, wanted)})


def _elsewhere(signature: Signature, required: Sequence[str]) -> bool:
    """Whether an argument whose name tells what it is stands in another place than the contract's."""
    places = [meaning(p["name"], required) for p in signature]
    known = [(place, name) for place, name in enumerate(places) if name and places.count(name) == 1]
    return len(required) > 1 and any(required.index(name) != place for place, name in known)


def _insisted(tool: Tool, name: str, wanted: Sequence[str | None]) -> bool:
    """Whether an argument that the contract makes optional has no default there."""
    return name in wanted or any(element in wanted for element in tool.elements.get(name, ()))
