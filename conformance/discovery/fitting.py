"""What a candidate needs besides construction: derived sizes, the part of its result, the longest input."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.toml_text import line
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.calling import Call
from conformkit.conformance.discovery.construction import names_in
from conformkit.conformance.discovery.meanings import LONGEST, MOST_ROWS, WINDOW, is_window, sizes_of
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.components import Component, component

__all__ = [
    "free_length",
    "limit_inner",
    "limit_length",
    "limit_rows",
    "limit_to_tables",
    "pass_targets",
    "take_output",
    "tell_nature",
]

_BEYOND = 1_100
"""An input longer than any block size that is tried, and than usual defaults."""
_FREE = 4096
"""A longest input beyond all that are tried, where one must be passed."""
_SHORT, _LONG = 5, 600
"""The longest input that has been tried, and the longest at which clauses about every size call a part."""
_WIDTHS = {48: "4 * d_model", 32: "8 * d_model // 3", 24: "2 * d_model", 36: "3 * d_model", 12: "d_model"}
"""By extents of parameters with d_model = 12, the value of d_ff if no argument sets it; fused projections come late."""


_WIDTHS_TRIED = (50, 94, 170)
"""Even widths that are no multiples of 3: two thirds of others are multiples of 16."""
_SHARES = ((8, 3), (2, 3), (4, 3), (16, 3), (7, 2), (5, 2), (4, 1), (3, 1), (2, 1), (1, 1))
_MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""What an inner width may be: a share of the outer one, as a fraction, rounded up or down to a multiple."""
_OF_THE_CODE = 200
"""An extent that no size that is tried explains."""
_LAYERS = ("FeedForward", "TransformerBlock", "EncoderLayer", "DecoderLayer")
_INNER = 20
"""The inner width that is tried."""
_HALF_AGAIN = "(3 * d_ff + 1) // 2"
"""What two thirds of are d_ff, also if it is odd."""
_IN_SETTINGS = 2
"""How long the way to an argument in an object of settings is, at least."""


def limit_inner(component: Component, proposal: Proposal, names: frozenset[str], call: Call, bench: Bench) -> None:
    """If no argument sets the inner width, it follows from the outer; if none sets the heads, there is one."""
    own = {argument.name for argument in component.arguments}
    limits: dict[str, Any] = proposal.table.get("limits", {})
    if "num_heads" in own - limits.keys() and not {"num_heads", "d_model // num_heads"} & names:
        limits["num_heads"] = 1
        proposal.doubts.append("no argument sets the number of heads: assumed to be one")
    if "num_layers" in own - limits.keys() and "num_layers" not in names:
        limits["num_layers"] = 1
        proposal.doubts.append("no argument sets the number of blocks: assumed to be one")
    if limits:
        proposal.table["limits"] = limits
    if "d_ff" in own - limits.keys() and "d_ff" not in names:
        table = {**proposal.table, "call": call.written(mask=call.required)}
        proposal.table["limits"] = {**limits, "d_ff": inner_width(component.name, table, bench)}
    elif "d_ff" in own - limits.keys():
        _leave_unread(component, proposal, call, bench)
        _ask_for_more(component, proposal, call, bench)


def _leave_unread(component: Component, proposal: Proposal, call: Call, bench: Bench) -> None:
    """Leave the inner width out of settings from which the code does not read it: it follows from the outer."""
    construct = proposal.table.get("construct", {})
    path = _path_of(construct, "d_ff")
    table = {**proposal.table, "call": call.written(mask=call.required)}
    extents = bench.extents(component.name, table) if len(path) >= _IN_SETTINGS else set()
    if not extents or any(not extent % _INNER for extent in extents):
        return
    without = _without(construct, path)
    width = inner_width(component.name, {**table, "construct": without, "limits": {}}, bench)
    proposal.table["construct"] = without
    proposal.table["limits"] = {**proposal.table.get("limits", {}), "d_ff": width}
    proposal.doubts.append(
        f"{path[-1]} of its settings changes no parameter: taken for one that the code does not read"
    )


def _ask_for_more(component: Component, proposal: Proposal, call: Call, bench: Bench) -> None:
    """Ask for half as much again where the code makes its inner layers two thirds as wide as it is told."""
    construct = proposal.table.get("construct", {})
    path = _path_of(construct, "d_ff")
    if not path:
        return
    table = {**proposal.table, "call": call.written(mask=call.required)}
    extents = bench.extents(component.name, table, learned=True)
    thirds = 2 * _INNER // 3
    if not extents & {thirds, 2 * thirds} or any(not extent % _INNER for extent in extents):
        return
    proposal.table["construct"] = _with(construct, path, _HALF_AGAIN)
    proposal.doubts.append(f"the code makes {path[-1]} smaller, to two thirds: it is asked for as much more")


def inner_width(name: str, table: Mapping[str, Any], bench: Bench) -> str | int:
    """Return what d_ff is in code of which no argument sets it: a share of the width, or a number of the code."""
    extents = bench.extents(name, table)
    widest = max(bench.extents(name, table, learned=True), default=0)
    of_parts = [bench.parts.get(layer, {}).get("limits", {}).get("d_ff") for layer in _LAYERS]
    uncommon = [text for text in of_parts if isinstance(text, str) and text not in _WIDTHS.values()]
    if name not in _LAYERS and uncommon:
        return uncommon[0]
    if text := _rounded(name, table, bench):
        return text
    if widest >= _OF_THE_CODE and name in _LAYERS:
        return widest
    fixed = table.get("limits", {}).get("d_model")
    scale = Fraction(fixed if isinstance(fixed, int) else bench.sizes.get("d_model", 12), 12)
    return next((text for extent, text in _WIDTHS.items() if extent * scale in extents), "4 * d_model")


def _rounded(name: str, table: Mapping[str, Any], bench: Bench) -> str:
    """Return the inner width as a share of the outer one that is rounded to a multiple; nothing if it is not.

    At three widths, of which the first alone would fit several.
    """
    if name not in _LAYERS or "d_model" in table.get("limits", {}):
        return ""
    try:
        alone = {"num_heads": 1} if "num_heads" in sizes_of(component(name)) else {}
        found = {d: bench.extents(name, table, learned=True, d_model=d, **alone) for d in _WIDTHS_TRIED}
    except WorkerLost:
        raise
    except TROUBLE:
        return ""
    of_the_code = set.intersection(*found.values())
    found = {d: extents - of_the_code for d, extents in found.items()}
    if all({d} >= extents or max(extents) % d == 0 for d, extents in found.items()):
        return ""
    for (top, below), multiple, more in product(_SHARES, _MULTIPLES, (True, False)):
        if all(_in_multiples(top * d // below, multiple, up=more) in extents for d, extents in found.items()):
            share = f"{top} * d_model // {below}" if below > 1 else f"{top} * d_model"
            raised = f"({share} + {multiple - 1})" if more else share
            return share if multiple == 1 else f"{raised} // {multiple} * {multiple}"
    return ""


def _in_multiples(number: int, multiple: int, *, up: bool) -> int:
    return (number + multiple - 1 if up else number) // multiple * multiple


def take_output(component: Component, proposal: Proposal, bench: Bench) -> bool:
    """Declare which part of the result is the output; return whether there is one of the right shape."""
    shown = bench.shown(component.name, proposal.table)
    keys = shown.keys()
    if shown.fits and not (keys and isinstance(keys[0], str)):
        return True
    for key in keys:
        table = {**proposal.table, "output": key}
        try:
            if bench.shown(component.name, table).fits:
                proposal.table = table
                return True
        except WorkerLost:
            raise
        except TROUBLE:
            continue
    return shown.fits


def pass_targets(component: Component, proposal: Proposal, call: Call, bench: Bench) -> bool:
    """Pass targets to a model that gives only the last position without them; whether the shape is then right."""
    if not call.targets:
        return False
    proposal.table = {**proposal.table, "call": call.written(mask=call.required, targets=True)}
    proposal.doubts.append(f"without {call.targets} it returns only one position: the ids are passed as {call.targets}")
    return take_output(component, proposal, bench)


def limit_length(component: Component, proposal: Proposal, own: int | None, bench: Bench) -> None:
    """Declare the longest input if it is a made-up value or `own`, a number of its module, and longer ones are refused.

    A number of the module may be the made-up one, as in code for 256 positions. It is no limit of what is built with
    the made-up one and refuses it: settings of the module may be those of a larger model.
    """
    made_up = LONGEST in _constants(proposal.table)
    if "block_size" in sizes_of(component) or (own is None and not made_up):
        return
    longest = own if own and not (made_up and not _takes(component, proposal, own, bench)) else LONGEST
    if not _takes(component, proposal, longest + 1, bench) or (made_up and _counts(component, proposal, bench)):
        proposal.table["limits"] = {**proposal.table.get("limits", {}), "tokens": {"max": longest}}


def _counts(part: Component, proposal: Proposal, bench: Bench) -> bool:
    """Whether longer inputs than the made-up value give other results with a larger one, as where it cuts distances."""
    tables = (proposal.table, _enlarged(proposal.table))
    try:
        one, other = (bench.built(part.name, each, _of_longer) for each in tables)
    except WorkerLost:
        raise
    except TROUBLE:
        return False
    return not np.array_equal(one, other)


def _of_longer(instance: Instance) -> Array:
    return instance(*instance.example_inputs(Draw(0, "longer"), batch=1, tokens=2 * LONGEST, further=0))


def _enlarged(value: Any) -> Any:
    """Return arguments with twice the made-up value."""
    if isinstance(value, dict):
        return {name: _enlarged(inner) for name, inner in value.items()}
    return 2 * LONGEST if value == LONGEST else value


def limit_rows(proposal: Proposal, bench: Bench) -> None:
    """Declare the largest batch if it is a made-up value, the room of a cache, and more rows are refused."""
    if not _gives(proposal.table.get("construct", {}), MOST_ROWS):
        return
    try:
        bench.built(proposal.component, proposal.table, _of_more_rows)
    except WorkerLost:
        raise
    except TROUBLE:
        proposal.table = {**proposal.table, "limits": {**proposal.table.get("limits", {}), "batch": {"max": LONGEST}}}


def _of_more_rows(instance: Instance) -> Array:
    return instance(*instance.example_inputs(Draw(0, "more rows"), batch=LONGEST + 1, tokens=2, further=0))


def _gives(construct: Any, names: Collection[str]) -> bool:
    """Whether nested arguments give the made-up value to one of these names."""
    return isinstance(construct, dict) and any(
        (key.lower() in names and value == LONGEST) or _gives(value, names) for key, value in construct.items()
    )


def limit_to_tables(proposal: Proposal, bench: Bench) -> None:
    """Declare the longest input of a part that has a table of a length which no argument sets, with a doubt."""
    part = component(proposal.component)
    limits = proposal.table.get("limits", {})
    names = names_in(proposal.table.get("construct", {})) | names_in(proposal.table.get("globals", {})) | limits.keys()
    set_there = names if part.several or part.is_language_model else {*names, *sizes_of(part)}
    if {"block_size", "max_len", "tokens"} & set_there:
        return
    works, fails = _SHORT, _LONG
    if _takes(part, proposal, fails, bench) or not _takes(part, proposal, works, bench):
        return
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if _takes(part, proposal, middle, bench) else (works, middle)
    proposal.table = {**proposal.table, "limits": {**limits, "tokens": {"max": works}}}
    proposal.doubts.append(f"{fails} positions are refused: taken for a limit; if they should work, remove it")


def _takes(part: Component, proposal: Proposal, tokens: int, bench: Bench) -> bool:
    """Whether an input of so many positions gives a result of the right shape."""
    try:
        if part.several:
            longest = {"max_len": tokens} if any(argument.name == "max_len" for argument in part.arguments) else {}
            bench.answers(part.name, proposal.table, tokens, **longest)
            return True
        return bench.shown(part.name, proposal.table, tokens=tokens).fits
    except WorkerLost:
        raise
    except TROUBLE:
        return False


def free_length(component: Component, proposal: Proposal, bench: Bench) -> None:
    """Don't pass a longest input that limits nothing: rotated positions have no end, and texts are never cropped."""
    path = _path_of(proposal.table.get("construct", {}), "block_size")
    if "block_size" not in sizes_of(component) or not path or path[-1] == "block_size":
        return
    without = _without(proposal.table.get("construct", {}), path)
    table = {**proposal.table, "construct": without}
    said = "left at its default"
    try:
        if "block_size" in bench.subject(component.name, table).bound.construct.names():  # passed, by its usual name
            table["construct"] = without = _with(proposal.table["construct"], path, _FREE)
            said = f"always {_FREE}"
        if is_window(path[-1]):
            table["construct"] = without = _with(proposal.table["construct"], path, WINDOW)
            said = f"always {WINDOW}"
        tabled = bench.subject(component.name, table).build(**bench.sizes).sizes["block_size"] in bench.extents(
            component.name, proposal.table
        )
        works = not tabled and all(bench.shown(component.name, t, tokens=_BEYOND).fits for t in (proposal.table, table))
    except WorkerLost:
        raise
    except TROUBLE:
        return
    if works:
        proposal.table["construct"] = without
        proposal.doubts.append(f"{path[-1]} is {said}: longer inputs are accepted, so it limits nothing")


def _path_of(construct: Any, wanted: str) -> list[str]:
    """Return the keys that lead to a value in nested arguments; none if it is not there."""
    for key, value in construct.items() if isinstance(construct, dict) else ():
        if value == wanted:
            return [key]
        if inner := _path_of(value, wanted):
            return [key, *inner]
    return []


def _without(construct: dict[str, Any], path: list[str]) -> dict[str, Any]:
    key, *rest = path
    if not rest:
        return {name: value for name, value in construct.items() if name != key}
    return {**construct, key: _without(construct[key], rest)}


def _with(construct: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    key, *rest = path
    return {**construct, key: _with(construct[key], rest, value) if rest else value}


def tell_nature(proposal: Proposal, bench: Bench) -> None:
    """Add doubts that no table can express: a refused number format, a fixed dropout rate, a refused single head."""
    table = proposal.table
    names = names_in(table.get("construct", {}))
    form = bench.formats.get(table["path"], "float64")
    if form != "float64":
        proposal.doubts.append(f"it refuses float64, and is judged in {form}")
    if "dropout" in sizes_of(component(proposal.component)) and "dropout" not in names:
        why = "in training its outputs vary, and no argument sets the dropout rate: it is fixed in the code"
        if _varies(proposal, bench):
            proposal.doubts.append(f"{why}; clauses about dropout do not apply, and others may need it off")
    if "num_heads" in names and not _takes_one_head(proposal, bench):
        limits = {**table.get("limits", {}), "num_heads": {"min": 2}}
        why = "with one head it raises, or gives another shape"
        proposal.doubts.append(f"{why}. Kept as a mistake; if one head is out of scope, declare")
        proposal.offered.append((line("limits", limits), why))


def _takes_one_head(proposal: Proposal, bench: Bench) -> bool:
    try:
        return bench.shown(proposal.component, proposal.table, num_heads=1).fits
    except WorkerLost:
        raise
    except TROUBLE:
        return False


def _varies(proposal: Proposal, bench: Bench) -> bool:
    try:
        return bench.drops(proposal.component, proposal.table)
    except WorkerLost:
        raise
    except TROUBLE:
        return False


def _constants(value: Any) -> list[Any]:
    return [leaf for inner in value.values() for leaf in _constants(inner)] if isinstance(value, dict) else [value]
