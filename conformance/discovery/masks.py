"""Scaled dot-product attention: what its mask means, and where its result holds the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.calling import Call, masked_by
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.tracing.reading import Discrepancy
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.spec.attention import scaled_dot_product_attention

__all__ = ["AttentionTable", "of_attention"]

_NAME = "ScaledDotProductAttention"
_CLOSE = 1e-4
_RANKS: tuple[dict[str, Any], ...] = ({}, {"limits": {"rank": 4}}, {"layout": "one sequence"})
_CONTRACT = "mask"
_USUAL_ORDER = (0, 1, 2)
_ORDERS = [order for order in permutations(_USUAL_ORDER) if order != _USUAL_ORDER]
_HIDES = re.compile(
    r"\b(true|1|ones?|nonzero)\b[^.,;()\n]{0,40}\b(not allowed|disallow|forbid|"
    r"block|hidden|hides?|masked|ignored?|exclude|must not|may not)",
    re.IGNORECASE,
)
"""What an author says of a mask in which True hides."""


@dataclass(slots=True)
class AttentionTable:
    """The table of a function that mixes values; `matched`: without a mask it equals the definition."""

    table: dict[str, Any]
    matched: bool
    doubts: list[str] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)
    mistakes: list[Discrepancy] = field(default_factory=list)


def of_attention(item: Item, call: Call, bench: Bench) -> AttentionTable | None:
    """Return how to call a function as scaled dot-product attention; None if that fails or gives another shape."""
    bench.sizes = {}
    for table, output in _called(item, call, bench):
        chosen = table | output
        distance = _distance(chosen, None, bench)
        if distance is not None:
            found = AttentionTable(chosen, distance < _CLOSE)
            named = _masked(found, call, bench)
            ours = named.mask == _CONTRACT and named.positional[:3] == ("q", "k", "v") and not _HIDES.search(item.says)
            exact = ours and item.name == "scaled_dot_product_attention"
            if not (exact and item.boolean):  # a run passes Boolean masks only where that is documented
                _find_mask(found, named, bench, ours=ours, exact=exact)
            return found
    return _in_other_roles(item, call, bench)


def _in_other_roles(item: Item, call: Call, bench: Bench) -> AttentionTable | None:
    """Return how to call what gives the definition's numbers with its inputs interchanged; None if it is none.

    It refuses values of another width than keys, since it takes one for the other.
    """
    for table, order in product(_tables(item, call), _ORDERS):
        distance = _distance(table, None, bench, order)
        if distance is None or distance >= _CLOSE:
            continue
        kinds = [kind for kind in ("bool", "float") if _takes(table, kind, "attend", bench, order)]
        own = {"mask": {"kinds": kinds}} if len(kinds) == 1 else {}
        sentence = f"what it calls {', '.join('qkv')} it uses as {', '.join('qkv'[order.index(n)] for n in range(3))}"
        return AttentionTable(
            {**table, **own},
            False,
            [f"{sentence}: taken for a mistake"],
            mistakes=[Discrepancy("", sentence, {"order": order})],
        )
    return None


def _masked(found: AttentionTable, call: Call, bench: Bench) -> Call:
    """Return the call with a mask: the argument of that name, or another one with which a mask has its effect."""
    for name in call.open if not call.mask and found.matched else ():
        masked = masked_by(call, name)
        table = {**found.table, "call": masked.written(mask=True)}
        if any(_takes(table, kind, true, bench) for true, kind in product(("attend", "hide"), ("bool", "float"))):
            found.table = table
            return masked
    return call


def _called(item: Item, call: Call, bench: Bench) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield tables with declarations of the result."""
    yield from ((table, output) for table in _tables(item, call) for output in _outputs(table, bench))


def _tables(item: Item, call: Call) -> Iterator[dict[str, Any]]:
    """Yield ways to call it; a mask that is always added is 0 if there is none."""
    plain = {"path": item.path, "call": call.written(mask=bool(call.mask and not call.spare))}
    added = replace(call, named={**call.named, call.mask: "0.0 if mask is None else mask"})
    tables = [plain, {**plain, "call": added.written()}] if call.required and not call.spare else [plain]
    yield from ({**table, **limits} for limits, table in product(_RANKS, tables))


def _outputs(table: Mapping[str, Any], bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield declarations of the result: nothing for an array or a tuple that begins with the output."""
    try:
        shown = bench.shown(_NAME, table)
    except WorkerLost:
        raise
    except TROUBLE:
        return
    keys = shown.keys()
    if shown.fits and not (keys and isinstance(keys[0], str)):
        yield {}
    for key in keys:
        others = [other for other in keys if other != key]
        yield {"output": key} | ({"weights_output": others[0]} if len(others) == 1 else {})


def _find_mask(found: AttentionTable, call: Call, bench: Bench, *, ours: bool, exact: bool) -> None:
    """Find which masks give the definition's results. Code that follows the contract must meet the contract.

    `ours`: it takes its inputs and its mask as the contract does; `exact`: it also has its name.
    """
    if not call.mask or not found.matched:
        return
    if exact:
        _offer_kinds(found, bench)
        return
    for true in ("attend", "hide"):
        kinds = [kind for kind in ("bool", "float") if _takes(found.table, kind, true, bench)]
        if "bool" in kinds:
            break
    if kinds == ["bool", "float"] and true == "attend":
        return
    if not kinds:
        found.doubts.append(f"no mask passed as {call.mask} gives the definition's result: left unchanged")
        return
    if true == "hide" and "bool" in kinds and ours:
        why = "True in mask hides, but in the contract True means visible"
        found.offered.append(('mask = { true = "hide" }', why))
        found.doubts.append(f"{why}. Kept as a mistake; if it is intended, declare")
        return
    found.table["mask"] = {"kinds": kinds} | ({"true": "hide"} if true == "hide" and "bool" in kinds else {})
    lacking = {"bool", "float"} - set(kinds)
    if true == "hide" and "bool" in kinds:
        found.doubts.append(f"True in {call.mask} hides, as tried; if True should mean visible, it is a mistake")
    if lacking:
        found.doubts.append(f"masks of {lacking.pop()} give other numbers than the definition: assumed not supported")


def _offer_kinds(found: AttentionTable, bench: Bench) -> None:
    """Offer to declare that only Boolean masks are meant, where numbers in a mask are read as true or false."""
    if _takes(found.table, "bool", "attend", bench) and not _takes(found.table, "float", "attend", bench):
        why = "masks of numbers give other results than the definition, which adds them"
        found.offered.append(('mask = { kinds = ["bool"] }', why))
        found.doubts.append(f"{why}. Kept as a mistake; if only Boolean masks are meant, declare")


def _takes(
    table: Mapping[str, Any], kind: str, true: str, bench: Bench, order: tuple[int, ...] = _USUAL_ORDER
) -> bool:  # fmt: skip
    mask = {"kinds": [kind], **({"true": true} if kind == "bool" else {})}
    distance = _distance({**table, "mask": mask}, "bool", bench, order)
    return distance is not None and distance < _CLOSE


def _distance(
    table: Mapping[str, Any], masked: str | None, bench: Bench, order: tuple[int, ...] = _USUAL_ORDER
) -> float | None:  # fmt: skip
    """Return its distance from the definition, relative to the largest number; None if it has another shape.

    `order` says which of its inputs the definition gets as queries, keys and values.
    """
    draw = Draw(0, "adapt a mask")
    before = (2, 2) if "limits" in table else (2,)
    q, k, v = (
        draw.values(*before, 3 if order[0] == 0 else 5, 4),  # keys and values are equally many
        draw.values(*before, 5, 4),
        draw.values(*before, 5, 7 if order == _USUAL_ORDER else 4),
    )
    mask = (np.arange(5) <= np.arange(3)[:, None] + 1) if masked else None
    try:
        subject = bench.subject(_NAME, table)
        out = subject.build()(q, k, v, mask) if mask is not None else subject.build()(q, k, v)
    except WorkerLost:
        raise
    except TROUBLE:
        return None
    if order[0] != 0 and mask is not None:
        return None
    queries, keys, values = ((q, k, v)[n] for n in order)
    want = scaled_dot_product_attention(queries, keys, values, mask)
    if out.shape != want.shape:
        return None
    distance = float(np.abs(out - want).max() / np.abs(want).max())
    return distance if np.isfinite(distance) else np.inf
