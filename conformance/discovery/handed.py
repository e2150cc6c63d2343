"""Tables that a model computes and hands to its parts: cosines and sines of a rotation, as arguments of the call.

A function or class of the package that makes them is found by its name, and its arguments by theirs. Nothing is
believed of that: with the wrong table no variant of the definition gives the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from conformkit.conformance.discovery.calling import Call
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import LONGEST, is_settings, meant
from conformkit.conformance.discovery.settings_objects import settings_of
from conformkit.spec.components import Component

__all__ = ["handed"]

_MAKES = re.compile(r"cos|sin(?!g)|freq|rope|rotary|angle|phase|table", re.IGNORECASE)
_APPLIES = re.compile(r"apply|rotate|repeat", re.IGNORECASE)
_BASE = 10000.0
_MAX_MAKERS = 24
_ITS_OWN = "its own"
"""Stands for an attribute that is called like the argument."""
_SIZES = ("d_model", "num_heads", "head_width")
_AT_CALL = ("T",)
"""What lengths are where a table is made for one call."""
_PARTS = ("head_width", "head_width // 2", "head_width // 4", "2 * (head_width // 4)")
"""Widths of what rotates, all of a head or a part."""
_POSITIONS = {"positions", "positionids", "posids", "tokenpositions", "pos"}


def handed(component: Component, call: Call, items: Sequence[Item]) -> Iterator[Call]:
    """Yield the call with objects for the arguments that are such tables; the call itself where none is required."""
    wanted = call.spare or call.tables
    takes = bool(wanted) and not call.unknown and "num_heads" in {a.name for a in component.arguments}
    if not takes or not call.spare:
        yield call
    if not takes:
        return
    for made in islice(_makers(items), _MAX_MAKERS):
        named = {name: {**made, **({"output": n} if len(wanted) > 1 else {})} for n, name in enumerate(wanted)}
        if made.get("output") == _ITS_OWN:
            named = {name: {**made, "output": name} for name in wanted}
        yield replace(call, named={**call.named, **named}, spare=())


def _makers(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Yield objects that give tables, a function's result or that of a class when called."""
    for item in items:
        if not _MAKES.search(item.name) or _APPLIES.search(item.name) or item.kind not in {"function", "class"}:
            continue
        if item.kind == "function":
            yield from ({"object": item.path, "arguments": given} for given in _given(item.call or (), _AT_CALL))
            continue
        if _is_read(item):
            given = _given(item.construct or (), _AT_CALL)
            yield from ({"object": item.path, "arguments": made, "output": _ITS_OWN} for made in given)
            continue
        for made, inputs in product(_built(item, items), _given(item.call or (), _AT_CALL)):
            yield {"object": item.path, "arguments": made, "call": inputs}


def _is_read(item: Item) -> bool:
    """Whether a class has no call of its own: its tables are attributes."""
    return all(p["kind"].startswith("var_") for p in item.call or ())


def _built(item: Item, items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    settings = next((p for p in item.construct or () if is_settings(p["name"])), None)
    if settings is None:
        yield from _given(item.construct or (), (LONGEST,))
        return
    for source in settings_of(item, items)[:1]:
        fields = [p for p in source.construct or source.call or () if p["kind"] in {"positional", "keyword"}]
        named = {p["name"]: meant(p["name"], _SIZES) for p in fields}
        arguments = {name: ours for name, ours in named.items() if ours}
        yield {settings["name"]: {"object": source.path, "arguments": arguments}}


def _given(signature: Sequence[Mapping[str, Any]], lengths: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield values for the arguments of a function that makes a table; none where one has no value."""
    usable = [p for p in signature if p["kind"] in {"positional", "keyword"}]
    values = {p["name"]: _values(p, lengths) for p in usable}
    needed = {name: found for name, found in values.items() if found}
    if any(p["required"] and not values[p["name"]] for p in usable):
        return
    for chosen in product(*needed.values()):
        yield dict(zip(needed, chosen, strict=True))


def _values(parameter: Mapping[str, Any], lengths: Sequence[Any]) -> Sequence[Any]:
    """Return what an argument may be, the most plausible first; nothing where it is unknown or may keep its default."""
    folded = parameter["name"].lower().replace("_", "")
    if any(word in folded for word in ("base", "theta")):
        return (_BASE,) if parameter["required"] else ()
    if lengths == _AT_CALL and folded in _POSITIONS:
        return ("positions", "position_ids", *(lengths if folded == "positions" else ()))
    if lengths == _AT_CALL and folded in {"x", "hiddenstates"}:
        return ("x",) if parameter["required"] else ()
    if folded in {"t", "end", "n", "start", "offset"} or re.search("len|seq|max|block|context|positions|long", folded):
        return lengths if folded not in {"start", "offset"} else (0,)
    if folded in {"dim", "d", "width", "rotarydim", "dhead", "nelem"} or "dim" in folded or "head" in folded:
        return _PARTS
    return ()
