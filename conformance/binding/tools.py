"""From what an implementation exports to bound tools: how each is constructed and called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.by_position import by_position
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.further import Further, further_of_tool, without_constants
from conformkit.conformance.binding.masks import MASKS, MaskForm
from conformkit.conformance.binding.signatures import (
    Signature,
    SignatureMismatch,
    call_from,
    construct_from,
    named_from,
)
from conformkit.conformance.binding.tool_config import MethodConfig, ToolConfig
from conformkit.spec.components import Argument
from conformkit.spec.tools import FUNCTION, TOOLS, ToolContract

__all__ = ["PLAIN", "BoundCall", "BoundTool", "ToolMismatch", "bind_tool", "tool_targets"]

PLAIN = frozenset({"defaults", "defaults of tools"})
"""Where one of these is refused, a tool is called without constants if it can be: as callers of the contract do."""


class ToolMismatch(ValueError):
    """A tool is not constructed or called as the contract says; the message says how it is, and what to declare."""


@dataclass(frozen=True, slots=True)
class BoundCall:
    """How one method is called: its name (None: the tool is a function), its arguments, what to take of the result."""

    method: str | None
    arguments: Arguments
    output: Any
    defaults: Mapping[str, Any]
    """Values of the contract's optional arguments that are passed if a test gives none."""
    before: tuple[Arguments, ...] = ()
    """What is tried first: what callers of the contract pass, by position what it requires, without constants."""


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool of the contract, tied to what the implementation exports."""

    tool: ToolContract
    path: str
    factory: bool
    construct: BoundCall | None
    calls: Mapping[str, BoundCall]
    attributes: Mapping[str, tuple[str, ...]]
    """By the contract's name, the names to read it by: the first that there is."""
    arrays: str | None
    """How arrays are passed, if that is declared."""
    globals: Arguments = field(default_factory=Arguments)
    """What a function reads from its module in place of arguments."""
    mask: MaskForm = field(default_factory=MaskForm)
    """The kind of entries of returned masks, and what True means in them."""
    logits: str = ""
    reduction: str = ""
    """What a loss takes in place of logits, and returns in place of the mean."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Numbers that the code has in place of arguments: the tool is judged with them."""
    offers: Mapping[str, bool] = field(default_factory=dict)
    further: tuple[Further, ...] = ()
    """Arguments with a default that it gets and that no caller of the contract passes."""
    aside: Mapping[str, str] = field(default_factory=dict)
    """Methods that it has under the contract's names, and those that are declared in their place."""
    plain: bool = False
    """Whether it is called as callers of the contract do, if it can be."""
    stride: Arguments | None = None
    """How far windows lie apart, if that is declared."""


def tool_targets(config: Config, tools: Iterable[str] = tuple(TOOLS)) -> dict[str, str | None]:
    """Return what to look up: by tool, the declared path or None for the contract's name."""
    found: dict[str, str | None] = {}
    for name in tools:
        path = config.tool(name).path
        found[name] = f"{config.module}:{path}" if path and ":" not in path and config.module else path
    return found


_INSTEAD: Mapping[str, tuple[str, ...]] = {"vocab_size": ("n_vocab", "vocab_len", "get_vocab_size", "size", "__len__")}
"""What says the same as an attribute, in code that has no such attribute: `len(tokenizer)`."""


def bind_tool(tool: ToolContract, export: Mapping[str, Any], config: Config) -> BoundTool:
    """Work out how a tool is constructed and called. Raises ToolMismatch."""
    own, told = further_of_tool(tool, export, config)
    wanted = "class" if tool.construct is not None and not own.factory else "function"
    if (export["kind"] == "class") != (wanted == "class") and not tool.made:
        raise ToolMismatch(f"{export['path']} is a {export['kind']}, expected a {wanted}")
    plain = not PLAIN.isdisjoint(config.refused)
    try:
        construct = _construct(tool, export, own, plain=plain)
        calls = {name: _call(tool, name, export, own, plain=plain) for name in tool.calls}
    except SignatureMismatch as mismatch:
        raise ToolMismatch(f"{export['path']} {mismatch}; say in conform.toml how it is called") from None
    attributes = {
        name: tuple(
            dict.fromkeys([*([name] if plain else []), own.attributes.get(name, name), *_INSTEAD.get(name, ())])
        )
        for name in tool.attributes
    }
    used = {name for call in (construct, *calls.values()) if call is not None for name in call.arguments.names()}
    used |= own.globals.names() if own.globals is not None else set()
    offers = {name.replace("_", "-"): _passed(tool, name, used) for name in tool.optional()}
    return BoundTool(
        tool, export["path"], own.factory, construct, calls, attributes, own.arrays, own.globals or Arguments(),
        own.mask or _as_read(config), own.logits, own.reduction, own.limits, offers, told, _aside(export, own), plain,
        own.stride,
    )  # fmt: skip


def _as_read(config: Config) -> MaskForm:
    """Return what True means in the masks that components are declared to take, if it means the same in all of them."""
    taken = [own.mask.form for own in config.components.values() if own.mask is not None and own.mask.kinds]
    taken += [form for own in config.components.values() for name, form in own.masks.items() if name in MASKS]
    return MaskForm(true="hide") if taken and all(form.hides for form in taken) else MaskForm()


def _aside(export: Mapping[str, Any], own: ToolConfig) -> dict[str, str]:
    there = {*(export["methods"] or {})} - {*(export.get("stubs") or {})}
    paths = {name: method.path for name, method in own.methods.items() if method.path is not None}
    return {name: path for name, path in paths.items() if path != name and name in there}


def _passed(tool: ToolContract, name: str, used: Collection[str]) -> bool:
    """Whether the tool takes an optional argument of the contract, whole or as its elements."""
    elements = tool.elements.get(name, ())
    return name in used or (bool(elements) and set(elements) <= set(used))


def _construct(tool: ToolContract, export: Mapping[str, Any], own: ToolConfig, *, plain: bool) -> BoundCall | None:
    if tool.construct is None:
        if not own.factory and export["kind"] != "class":
            return None
        optional = tuple(a for a in tool.calls[FUNCTION] if not a.required)
        signature = export["call"] if own.factory else export["construct"]
        return _bound(tool, None, own.construct, signature, optional, None, plain=plain)
    signature = export["call"] if own.factory else export["construct"]
    return _bound(tool, None, own.construct, signature, tool.construct, None, plain=plain)


def _call(tool: ToolContract, name: str, export: Mapping[str, Any], own: ToolConfig, *, plain: bool) -> BoundCall:
    declared = own.methods.get(name) or MethodConfig()
    output = own.output if declared.output is None else declared.output
    if name == FUNCTION:
        signature = None if own.factory else export["call"]  # the factory's signature does not describe its product
        return _bound(tool, None, own.call, signature, tool.calls[name], output, plain=plain)
    method = declared.path or name
    described = (export["methods"] or {}).get(method)  # a library's base class has some that are not described
    return _bound(tool, method, declared.call, described, tool.calls[name], output, plain=plain)


def _bound(
    tool: ToolContract, method: str | None, declared: Arguments | None, signature: Signature | None,
    contract: Sequence[Argument], output: Any, *, plain: bool,
) -> BoundCall:  # fmt: skip
    """Pass required arguments by name if all their names are known, else by position; optional ones by name."""
    names, required = tool.names(contract), [a.name for a in contract if a.required]
    _refuse_another_meaning(declared, signature, required)
    optional = {a.name: a.default for a in contract if not a.required}
    if declared is not None:
        tried = [*(without_constants(declared, signature) if plain else []), declared]
        before = tuple(by_position(one, signature, required) or one for one in tried)
        return BoundCall(method, declared, output, optional, tuple(one for one in before if one != declared))
    if signature is None:
        return BoundCall(method, Arguments(tuple(Expression(name) for name in required), {}), output, {})
    wanted = [meaning(p["name"], names) for p in signature if p["required"]]
    by_name = len(required) > 1 and set(required) <= set(wanted)
    how = construct_from if by_name else named_from if _elsewhere(signature, required) else call_from
    arguments = how(signature, names, set(required))
    passed = {n: v for n, v in optional.items() if _insisted(tool, n, wanted)}
    placed = by_position(arguments, signature, required)
    return BoundCall(method, arguments, output, passed, (placed,) if placed is not None else ())


_OTHERWISE = re.compile(r"(mask|fn|func|criterion|model|optimizer|loader|device|path|file)s?$")
"""How names of arguments end that say what the argument is."""


def _refuse_another_meaning(declared: Arguments | None, signature: Signature | None, required: Sequence[str]) -> None:
    """Raise SignatureMismatch where an argument would get by its place what its name says that it is not.

    `special_mask` takes no list of ids, wherever it stands.
    """
    places = [p["name"] for p in signature or () if p["kind"] == "positional"] if declared is None else []
    for theirs, ours in zip(places, required, strict=False):
        said = _OTHERWISE.search(theirs.lower())
        if said and not meaning(theirs, required) and said[1] not in ours:
            raise SignatureMismatch([ours], [theirs], {})


def _elsewhere(signature: Signature, required: Sequence[str]) -> bool:
    """Whether an argument with a known name is at another position than the contract's."""
    places = [meaning(p["name"], required) for p in signature]
    known = [(place, name) for place, name in enumerate(places) if name and places.count(name) == 1]
    return len(required) > 1 and any(required.index(name) != place for place, name in known)


def _insisted(tool: ToolContract, name: str, wanted: Sequence[str | None]) -> bool:
    """Whether an argument that the contract makes optional has no default there."""
    return name in wanted or any(element in wanted for element in tool.elements.get(name, ()))
