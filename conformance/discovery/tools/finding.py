"""Which of an implementation's functions and classes are tools of the contract, and how they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.toml_text import table_text
from conformkit.conformance.binding.tools import ToolMismatch, bind_tool
from conformkit.conformance.discovery.crossing import gives_logarithms
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.tools.data_sets import SLIDING_WINDOWS, cuts_pieces, cuts_texts, windows_of
from conformkit.conformance.discovery.tools.roles import ROLES
from conformkit.conformance.discovery.tools.tables import table_of
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.evidence.mask_builders import HIDING
from conformkit.conformance.evidence.smoothing import Smoothed
from conformkit.conformance.subject.tool import Tool, ToolObject
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Level, clauses_of
from conformkit.spec.loss import cross_entropy
from conformkit.spec.profiles import named_profile
from conformkit.spec.tools import FUNCTION, TOOLS, ToolContract

__all__ = ["FoundTools", "as_tool", "found_tools"]

_CLAUSES = 4
"""How many clauses decide on what only its name and the order of its arguments speak for."""
_SIZES = "-SIZES"
"""How clauses end that draw many sizes, and take long."""


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Tables of tools by name, and why what looks like a tool is none."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    near: Mapping[str, str] = field(default_factory=dict)
    namesakes: Mapping[str, str] = field(default_factory=dict)
    """Paths of what has a tool's own name and is called otherwise, by tool."""
    lookalikes: Mapping[str, str] = field(default_factory=dict)
    """Those of `near` whose arguments say, too, that each is that tool: what nobody judged may hold a mistake."""


def found_tools(
    implementation: Implementation, items: Sequence[Item], wanted: Collection[str], profile: str,
    root: Path | None = None,
) -> FoundTools:  # fmt: skip
    """Look for these tools among definitions, trying those of which names alone do not say what they are.

    A name that fits and arguments that all have a known name decide: such a tool is judged, whatever it returns.
    `root` has the sources.
    """
    tables: dict[str, Mapping[str, Any]] = {}
    near: dict[str, str] = {}
    namesakes: dict[str, str] = {}
    lookalikes: dict[str, str] = {}
    settled: set[str] = set()
    for name in wanted:
        for made, item, sure in _candidates(implementation, TOOLS[name], items):
            if item.path in {other["path"] for other in tables.values()}:
                continue
            table = made if made is not None and has_attributes(implementation, TOOLS[name], made) else None
            table = _as_it_hides(implementation, TOOLS[name], table) if table and item.name != name else table
            if table is not None and TOOLS[name].averages:
                table = _as_it_averages(implementation, table, root)
            if table is not None and (
                sure or _makes_what_answers(implementation, name, table) or _holds(implementation, name, table, profile)
            ):
                tables[name] = table
                break
            if name == "get_batch" and item.kind == "function" and cuts_pieces(item, implementation):
                settled.add(name)
                break
            namesakes |= {name: item.path} if item.name == name else {}
            told = f"{item.path} may be it, and nothing shows how it is called: say so in conform.toml"
            near.setdefault(name, told)
            if _takes_what_it_takes(TOOLS[name], item):
                lookalikes.setdefault(name, told)
    every = (near, namesakes, lookalikes)
    left = [{name: told for name, told in each.items() if name not in {*tables, *settled}} for each in every]
    return FoundTools(tables, *left)


def _makes_what_answers(implementation: Implementation, name: str, table: Mapping[str, Any]) -> bool:
    """Whether a function whose arguments say what it is returns, for some numbers, a function that gives a number."""
    if "factory" not in table:
        return False
    numbers = {a.name: place for place, a in enumerate(TOOLS[name].calls[FUNCTION], start=3) if a.required}
    try:
        return isinstance(as_tool(implementation, name, table)(**numbers), int | float)
    except (ToolMismatch, DriverError, ClauseFailure):
        return False


def _takes_what_it_takes(tool: ToolContract, item: Item) -> bool:
    """Whether a function takes two of a tool's arguments, or one and has its name; models are handed to anything."""
    if item.data_set:
        return tool.name == SLIDING_WINDOWS
    if item.kind != "function" or tool.construct is not None:
        return False
    names = [argument.name for argument in tool.calls[FUNCTION] if argument.name not in {"model", "optimizer"}]
    meant = {ROLES[tool.name].meant(p["name"], names) for p in item.call or ()} - {None}
    return len(meant) > (item.name != tool.name)


def _candidates(
    implementation: Implementation, tool: ToolContract, items: Sequence[Item]
) -> list[tuple[Mapping[str, Any] | None, Item, bool]]:
    """Return what has such a name with its table, if there is one: the contract's own name first, then sure ones."""
    role, found = ROLES[tool.name], list[tuple[Mapping[str, Any] | None, Item, bool]]()
    kind = "function" if tool.construct is None else "class"
    for item in items:
        if item.data_set and tool.name == SLIDING_WINDOWS:
            made_of = windows_of(item, implementation) if cuts_texts(item) else (None, True)
            found += [(made_of[0], item, True)] if made_of[0] is not None or not made_of[1] else []
            continue
        if not role.calls(item.name) and item.name != tool.name:
            continue
        if item.kind == kind or tool.made:
            made = table_of(tool, role, item, _methods(implementation, item), _numbers(item, items))
            sure = bool(made and made[1]) and (item.kind == kind or role.says_which(item.name))
            if made or item.kind == kind or named_profile(tool.profile).parts_stand_alone:
                found.append((made[0] if made else None, item, sure))
        elif named_profile(tool.profile).parts_stand_alone:  # a loss that is a class is no less a loss
            found.append((None, item, False))
    return sorted(found, key=lambda one: (one[0] is None, one[1].name != tool.name, not one[2]))


def _numbers(item: Item, items: Sequence[Item]) -> dict[str, int]:
    """Return the whole numbers of its module, by name."""
    there = next((i for i in items if i.kind == "numbers" and i.path == f"{item.path.partition(':')[0]}:"), None)
    own = (there.construct or ()) if there is not None else ()
    return {p["name"]: int(p["default"]) for p in own if str(p["default"]).isdigit()}


def has_attributes(implementation: Implementation, tool: ToolContract, table: Mapping[str, Any]) -> bool:
    """Whether the objects of a class have the tool's attributes, as numbers, and are what the tool makes."""
    if not tool.attributes:
        return True
    shared = not ROLES[tool.name].says_which(table["path"].partition(":")[2])
    try:
        made = as_tool(implementation, tool.name, table).make(text="ab")
        numbers = all(type(made.attribute(name)) is int for name in tool.attributes)
        return numbers and not (shared and not _has_an_id_for_each(made, "ab"))
    except (ToolMismatch, DriverError, ClauseFailure):
        return False


def _has_an_id_for_each(tokenizer: ToolObject, text: str) -> bool:
    """Whether a text has as many ids as characters: a vocabulary of words has fewer, or adds some at the ends."""
    return len(np.atleast_1d(tokenizer.call("encode", text=text))) == len(text)


def _as_it_hides(
    implementation: Implementation, tool: ToolContract, table: Mapping[str, Any]
) -> Mapping[str, Any]:  # fmt: skip
    """Return the table of a builder of masks with what True means in them, where only the contract says it otherwise.

    Of two entries one is hidden in any case; if True is that one, and not the other, it hides.
    """
    if tool.name not in HIDING or tool.name == "create_masks":
        return table
    try:
        mask = np.asarray(as_tool(implementation, tool.name, table)(**HIDING[tool.name]))
    except (ToolMismatch, DriverError, ClauseFailure, ValueError):
        return table
    flat = mask.reshape(-1) if mask.dtype.kind in "biu" else np.zeros(0)
    hides = flat.size in {2, 4} and bool(flat[1]) and not flat[-2]  # of ids (1, 0), or of two positions each way
    return {**table, "mask": {"true": "hide"}} if hides else table


def _as_it_averages(
    implementation: Implementation, table: Mapping[str, Any], root: Path | None
) -> Mapping[str, Any]:  # fmt: skip
    """Return the table of a smoothed loss with what it takes and returns, where trials show that alone.

    That it takes logarithms of probabilities is believed of code whose other classes give them.
    """
    kind = str(table["path"]).rpartition(":")[2]
    told = {"logits": "log probabilities"} if gives_logarithms(root, but=kind) else {}
    forms: list[dict[str, str]] = [{}, told, {"reduction": "sum"}, {**told, "reduction": "sum"}]
    logits, targets = np.array([[[2.0, -1.0, 0.5, 0.0, 1.5], [0.0, 1.0, -0.5, 2.0, 0.3]]]), np.array([[3, 1]])
    want = cross_entropy(logits, targets)
    for form in forms:
        tried = {**table, **form}
        try:
            loss = Smoothed(as_tool(implementation, "LabelSmoothingLoss", tried))(logits, targets, 0.0)
        except (ToolMismatch, DriverError, ClauseFailure):
            continue
        if np.isclose(loss, want, rtol=1e-4):
            return tried
    return table


def as_tool(implementation: Implementation, name: str, table: Mapping[str, Any]) -> Tool:
    """Return what a table declares. Raises ToolMismatch, DriverError."""
    described = _described(implementation, str(table["path"]))
    return Tool(bind_tool(TOOLS[name], described, parse_config(table_text(name, table))), implementation)


def _methods(implementation: Implementation, item: Item) -> Mapping[str, Any]:
    return _described(implementation, item.path)["methods"] or {} if item.kind == "class" else {}


def _described(implementation: Implementation, path: str) -> Mapping[str, Any]:
    request = {"op": "describe", "targets": {"found": path}, "module": None}
    described: Mapping[str, Any] = implementation.request(request).header["exports"]["found"]
    return described


def _holds(implementation: Implementation, name: str, table: Mapping[str, Any], profile: str) -> bool:
    """Whether the first clauses about a tool hold for what a table declares, as far as they apply."""
    try:
        tool = as_tool(implementation, name, table)
    except (ToolMismatch, DriverError):
        return False
    about = [c for c in clauses_of(profile).values() if c.component == name and c.level is Level.MUST]
    many = 1 if "limits" in table else _CLAUSES  # its name and its arguments say the rest
    tried = [clause for clause in about if not clause.id.endswith(_SIZES)][:many]
    with implementation.trying(name, tool):
        judge = Judge(implementation, tests(profile))
        verdicts = [judge.result(clause.id).verdict for clause in tried]
    return Verdict.PASS in verdicts and not any(verdict.red for verdict in verdicts)
