"""From a definition to the table of conform.toml that makes it a tool: where each of the contract's arguments goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.binding.tool_config import MAX_ID
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.tools.roles import CONSTANTS, Role, folded
from conformkit.spec.components import Argument
from conformkit.spec.tools import FUNCTION, ToolContract

__all__ = ["Passed", "passed", "table_of"]

NO_NUMBERS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Passed:
    """What each argument gets, in the contract's names; `sure` if all of that stands in their names."""

    arguments: dict[str, Any]
    sure: bool


def table_of(
    tool: ToolContract, role: Role, item: Item, methods: Mapping[str, Signature],
    numbers: Mapping[str, int] = NO_NUMBERS,
) -> tuple[dict[str, Any], bool] | None:  # fmt: skip
    """Return the table that declares a definition as a tool, and whether its names leave no doubt; None if none does.

    `methods` are those of a class, with their signatures; `numbers` are those of its module.
    """
    if item.kind == "class" and tool.made:
        return _of_object(tool, role, item)
    if (item.kind == "class") != (tool.construct is not None):
        return None
    if item.kind == "class":
        return _of_class(tool, role, item, methods)
    found = passed(role, item.call, tool.calls[FUNCTION], marks=tool.marks)
    if found is not None:
        return {"path": item.path, "call": found.arguments}, found.sure
    found_there = _with_globals(role, item, tool.calls[FUNCTION])
    found_there = found_there or (_of_factory(role, item, tool.calls[FUNCTION]) if tool.made else None)
    return found_there or (_with_its_own(tool, role, item, numbers) if tool.limited else None)


def _with_its_own(
    tool: ToolContract, role: Role, item: Item, numbers: Mapping[str, int]
) -> tuple[dict[str, Any], bool] | None:
    """Return the table of a function that has numbers in place of some arguments; None if that is not all that lacks.

    Those that it does not read are its own as well: a special id that it forgets is a mistake. A trial decides.
    """
    taken = {role.meant(p["name"], tool.limited) for p in item.call or ()}
    own: dict[str, Any] = {}
    for name in [name for name in tool.limited if name not in taken]:
        there = [number for called, number in numbers.items() if role.own[name].fullmatch(folded(called))]
        if not there or max(there) > MAX_ID:
            return None
        own[name] = sorted(set(there)) if name.endswith("s") else there[0]
    rest = [a for a in tool.calls[FUNCTION] if a.name not in own]
    found = passed(role, item.call, rest) if own else None
    if found is not None:
        return {"path": item.path, "call": found.arguments, "limits": own}, False
    made = _with_globals(role, item, rest) if own else None
    return ({**made[0], "limits": own}, False) if made is not None else None


def _with_globals(role: Role, item: Item, contract: Sequence[Argument]) -> tuple[dict[str, Any], bool] | None:
    """Return the table of a function that reads from its module what it does not take; None if something lacks."""
    left = [a for a in contract if a.required]
    read: dict[str, str] = {}
    for name in item.reads:
        ours = role.meant(name, [a.name for a in left if a.name not in read.values()])
        read |= {name: ours} if ours else {}
    called = [a for a in left if a.name not in read.values()]
    found = passed(role, item.call, called) if called or item.call else Passed({}, sure=True)
    if found is None or not read:
        return None
    given = {theirs: ours for theirs, ours in found.arguments.items() if ours in {a.name for a in called}}
    sure = found.sure and all(role.meant(theirs, (ours,)) for theirs, ours in given.items())
    return {"path": item.path, "call": [found.arguments] if found.arguments else [], "globals": read}, sure


def _of_object(tool: ToolContract, role: Role, item: Item) -> tuple[dict[str, Any], bool] | None:
    """Return the same for a class whose objects are called as the function is, and made of what they don't take."""
    contract = tool.calls[FUNCTION]
    taken = {role.meant(p["name"], [a.name for a in contract if a.required]) for p in item.call or ()}
    own = tuple(a for a in contract if a.name in taken or not a.required)
    called = passed(role, item.call, contract) or (passed(role, item.call, own) if own != contract else None)
    if called is None:
        return None
    given = {*called.arguments.values()}
    made = passed(role, item.construct, tuple(a for a in contract if not a.required or a.name not in given))
    if made is None:
        return None
    table = {"path": item.path, "construct": made.arguments, "call": called.arguments}
    return {key: value for key, value in table.items() if value}, made.sure and called.sure


def _of_factory(role: Role, item: Item, contract: Sequence[Argument]) -> tuple[dict[str, Any], bool] | None:
    """Return the table of a function that takes all but the first argument, and may return a function of that one."""
    made = passed(role, item.call, contract[1:]) if sum(a.required for a in contract) > 1 else None
    if made is None or not made.sure:
        return None
    return {"path": item.path, "factory": True, "construct": made.arguments, "call": [contract[0].name]}, False


def _of_class(
    tool: ToolContract, role: Role, item: Item, methods: Mapping[str, Signature]
) -> tuple[dict[str, Any], bool] | None:
    names = {name: _method(name, role, methods) for name in tool.calls if name != FUNCTION}
    inherited = tool.name == "AdamW"  # what it does not define, its base class does
    if not inherited and not all(names.values()):
        return None
    made = passed(role, item.construct, tool.construct or (), tool.elements)
    called = passed(role, item.call, tool.calls[FUNCTION]) if FUNCTION in tool.calls else None
    if made is None or (FUNCTION in tool.calls and called is None):
        return None
    renamed = {name: {"path": theirs} for name, theirs in names.items() if theirs and theirs != name}
    table: dict[str, Any] = {"path": item.path, "construct": made.arguments}
    table |= {"call": called.arguments} if called is not None else {}
    table |= {"methods": renamed} if renamed else {}
    return table, made.sure and (called is None or called.sure)


def _method(name: str, role: Role, methods: Mapping[str, Signature]) -> str:
    """Return the method of a class that is the contract's."""
    others = (theirs for theirs in methods if folded(theirs) in role.methods.get(name, ()))
    return name if name in methods else next(others, "")


def passed(
    role: Role, signature: Signature | None, contract: Sequence[Argument],
    elements: Mapping[str, tuple[str, ...]] | None = None, marks: Mapping[str, tuple[str, str]] | None = None,
) -> Passed | None:  # fmt: skip
    """Return what each argument gets: by their names, the rest in the contract's order; None if that does not come out.

    Arguments that are required and that the contract does not have get a constant where one does no harm.
    """
    usable = [p for p in signature or () if p["kind"] in {"positional", "keyword"} and not p["positional_only"]]
    required = [a.name for a in contract if a.required]
    marks = marks or {}
    known = _by_name(role, usable, contract, elements or {}, marks)
    marked = {marks[ours][1] for ours in known.values() if ours in marks}
    fixed = _constants(role, [p for p in usable if p["required"] and p["name"] not in known])
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in {**known, **fixed}]
    missing = [name for name in required if name not in {*known.values(), *marked}]
    if len(missing) != len(unknown) or not (usable or not required):
        return None
    rest = dict(zip(unknown, missing, strict=True))
    return Passed({**known, **rest, **fixed}, not rest or len(required) == 1)


def _by_name(
    role: Role,
    usable: Signature,
    contract: Sequence[Argument],
    elements: Mapping[str, tuple[str, ...]],
    marks: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    names = [a.name for a in contract]
    wanted = [*names, *(element for name in names for element in elements.get(name, ())), *marks]
    known: dict[str, Any] = {}
    for parameter in sorted(usable, key=lambda p: (not p["required"], p["name"] not in wanted)):
        left = [name for name in wanted if name not in known.values()]
        ours = role.meant(parameter["name"], left)
        if ours:
            known[parameter["name"]] = ours
    return {p["name"]: known[p["name"]] for p in usable if p["name"] in known}


def _constants(role: Role, parameters: Signature) -> dict[str, Any]:
    values = {**CONSTANTS, **role.constants}
    return {p["name"]: values[folded(p["name"])] for p in parameters if folded(p["name"]) in values}
