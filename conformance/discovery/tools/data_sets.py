"""Classes whose items are the windows of a text: how they are built, how their windows lie, which part is which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.toml_text import table_text
from conformkit.conformance.binding.tools import BoundCall, ToolMismatch, bind_tool
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.tools.roles import ROLES, folded
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.tools import TOKENIZER, TOOLS

__all__ = ["SLIDING_WINDOWS", "cuts_pieces", "cuts_texts", "windows_of"]

SLIDING_WINDOWS = "sliding_windows"
"""The tool that a data set may be."""
_FIRST, _COUNT, _LENGTH, _READ = 100, 40, 5, 3
"""The first id, how many there are, how long windows are, and how many of these are read."""
_STRIDES: Mapping[int, str] = {_LENGTH: "block_size", _LENGTH + 1: "block_size + 1"}
"""How far windows lie apart that do not overlap: the second for those that are cut together with their last target."""
_TOKENIZERS = frozenset({"tokenizer", "enc", "tok", "encoder"})
_PLACES = frozenset({"i", "idx", "index", "start", "pos", "position", "offset", "place", "begin"})
_ITEM, _LEN = "__getitem__", "__len__"
_TARGETS = re.compile(r"label|target|^y$|next")
_OF_THE_CALLER = re.compile(r"label")
"""In names of targets that are the inputs themselves by custom, for a model that shifts them."""


def cuts_texts(item: Item) -> bool:
    """Whether it is a data set that is made from a text, or its ids, and the length of a window."""
    return item.data_set and (made := _constructor(item)) is not None and "block_size" in made.values()


def windows_of(item: Item, implementation: Implementation) -> tuple[dict[str, Any] | None, bool]:
    """Return the table of a data set of windows, None where nothing shows one, and whether its first items are right.

    An item may be one window alone, for callers that shift; such a data set has no table.
    """
    made = _constructor(item) or {}
    for form in ("tensor", "array", "list"):
        table: dict[str, Any] = {
            "path": item.path,
            "construct": made,
            "call": [],
            **({} if form == "tensor" else {"arrays": form}),
        }
        try:
            first, count = _first_items(implementation, table, form)
        except (ToolMismatch, DriverError, ClauseFailure):
            continue
        return _read(table, first, count)
    return None, False


def cuts_pieces(item: Item, implementation: Implementation) -> bool:
    """Whether a function cuts the piece at a place, and its targets one later, from a stream, or columns or rows of it.

    That is no batch drawn at random, and what it gives is all that there is to see: `get_batch(source, i)`.
    """
    taken, meant = dict[str, Any](), ROLES["get_batch"]
    for parameter in item.call or ():
        ours = meant.meant(parameter["name"], {"ids", "block_size"} - {*taken.values()})
        if folded(parameter["name"]) in _PLACES:
            taken[parameter["name"]] = "place"
        elif ours:
            taken[parameter["name"]] = ours
        elif parameter["required"]:
            return False
    if not {"ids", "place"} <= {*taken.values()}:
        return False
    rows = np.arange(_FIRST, _FIRST + 10 * _COUNT)
    two = np.stack([rows, rows[::-1]], axis=1)
    return any(_is_cut(item, implementation, taken, *one) for one in ((rows, 0), (two, 0), (two.T, 1)))


def _is_cut(item: Item, implementation: Implementation, taken: Mapping[str, str], stream: Any, axis: int) -> bool:
    described = implementation.request({"op": "describe", "targets": {"found": item.path}, "module": None})
    for place in (0, 3):
        call = {theirs: place if ours == "place" else ours for theirs, ours in taken.items()}
        table = parse_config(table_text("get_batch", {"path": item.path, "call": call}))
        try:
            tool = Tool(bind_tool(TOOLS["get_batch"], described.header["exports"]["found"], table), implementation)
            x, y = (np.asarray(part) for part in tool(ids=stream, block_size=_LENGTH))
        except (ToolMismatch, DriverError, ClauseFailure, ValueError, TypeError):
            return False
        length = x.shape[axis] if x.ndim == stream.ndim else 0
        now, after = (stream[(slice(None),) * axis + (slice(at, at + length),)] for at in (place, place + 1))
        if length < _READ or not np.array_equal(x, now) or not np.array_equal(y.reshape(-1), after.reshape(-1)):
            return False
    return True


def _constructor(item: Item) -> dict[str, Any] | None:
    """Return what each argument of its constructor gets: None if some get nothing."""
    role, found = ROLES[SLIDING_WINDOWS], dict[str, Any]()
    parameters = [p for p in item.construct or () if p["kind"] in {"positional", "keyword"}]
    texts = any(folded(p["name"]) in _TOKENIZERS for p in parameters)
    stream = "text" if texts else "ids"
    for parameter in parameters:
        name, left = folded(parameter["name"]), {"ids", "block_size"} - {*found.values()}
        ours = role.meant(parameter["name"], sorted(left, reverse=True))
        if name in role.constants:
            found[parameter["name"]] = role.constants[name]
        elif name in _TOKENIZERS or (ours and not (ours == "ids" and stream in found.values())):
            found[parameter["name"]] = TOKENIZER if name in _TOKENIZERS else stream if ours == "ids" else ours
        elif parameter["required"]:
            return None
    return found if stream in found.values() else None


def _first_items(
    implementation: Implementation, table: Mapping[str, Any], form: str
) -> tuple[list[Mapping[int | str, Any]], int]:
    """Return the parts of its first items by place or key, and how many items it has of ids that count up."""
    described = implementation.request({"op": "describe", "targets": {"found": table["path"]}, "module": None})
    bound = bind_tool(
        TOOLS[SLIDING_WINDOWS], described.header["exports"]["found"], parse_config(table_text(SLIDING_WINDOWS, table))
    )
    tool = Tool(bound, implementation)
    made = tool.make(ids=np.arange(_FIRST, _FIRST + _COUNT), block_size=_LENGTH)
    count = tool.ask(made.handle, BoundCall(_LEN, Arguments(), None, {}), {}, form=form)
    read = BoundCall(_ITEM, Arguments((Expression("place"),)), None, {})
    items = [tool.ask(made.handle, read, {"place": place}, form=form) for place in range(_READ)]
    if type(count) is not int:
        raise ClauseFailure("its length is no number")
    return [item if isinstance(item, Mapping) else dict(enumerate(_parts(item))) for item in items], count


def _parts(item: Any) -> Sequence[Any]:
    """Return the parts of an item: one that is a window alone is the only one."""
    whole = not isinstance(item, list) or not item or not isinstance(item[0], list)
    return [item] if whole else item


def _read(
    table: Mapping[str, Any], items: Sequence[Mapping[int | str, Any]], count: int
) -> tuple[dict[str, Any] | None, bool]:
    keys = [key for key, part in items[0].items() if _is_window(part)]
    keys.sort(key=lambda key: bool(_TARGETS.search(str(key).lower())))
    if not keys or any(not _is_window(item.get(key)) for item in items for key in keys):
        return None, False
    x = [item[keys[0]] for item in items]
    steps = {after[0] - before[0] for before, after in pairwise(x)}
    follow = x[0][0] == _FIRST and all(np.diff(row).tolist() == [1] * (len(row) - 1) for row in x)
    step = next(iter(steps)) if len(steps) == 1 else 0
    stride = _STRIDES.get(step, "")
    known = steps <= {0, 1} or bool(stride)
    if len(keys) == 1:
        return None, known and follow and len(x[0]) in {_LENGTH, _LENGTH + 1}
    y = [item[keys[1]] for item in items]
    if x == y and _OF_THE_CALLER.search(str(keys[1]).lower()):
        return None, False
    right = known and follow and all(after == [n + 1 for n in before] for before, after in zip(x, y, strict=True))
    if not known or (stride and right and count == len(range(0, _COUNT - _LENGTH, step)) - 1):
        return None, right
    plain = keys == [0, 1] and len(items[0]) == 2
    return {**table, **({} if plain else {"output": keys[:2]}), **({"stride": stride} if stride else {})}, right


def _is_window(part: Any) -> bool:
    """Whether a part of an item has ids of those that were given, whatever their order."""
    numbers = isinstance(part, list) and bool(part) and all(type(number) is int for number in part)
    return numbers and all(_FIRST - 1 <= number <= _FIRST + _COUNT for number in part)
