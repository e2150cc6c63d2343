"""Components of an encoder-decoder, or of an encoder alone: which class is which, how to build and call it, its masks.

What the kit finds by names anyway is left out of the table; its entries were tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, takewhile
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.lookups import serves
from conformkit.conformance.binding.masks import KNOWN, MASKS, NAMES
from conformkit.conformance.binding.toml_text import line
from conformkit.conformance.diagnosis.looked_for import STACKS
from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.candidates import named
from conformkit.conformance.discovery.construction import Construction, names_in, ways
from conformkit.conformance.discovery.fitting import inner_width, limit_to_tables
from conformkit.conformance.discovery.hidden_ids import masks_that_hide, masks_that_hide_rows
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.looking import look_inside, place_weights
from conformkit.conformance.discovery.meanings import required_sizes
from conformkit.conformance.discovery.own_heads import own_head
from conformkit.conformance.discovery.passed_masks import shows_words
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.settings import by_trial
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.probing.mask_trial import with_masks
from conformkit.conformance.subject.component import Subject
from conformkit.spec.components import Component, base_of

__all__ = ["choose", "hidden_by_what_shows"]

_CLOSE = 1e-4
_LAYOUTS: tuple[dict[str, str], ...] = ({}, {"layout": "sequence first"})
_WHOLLY = 2
"""Fit of a candidate whose numbers are the definition's, with masks too."""
_FORMS = [{"true": true, "kind": kind} for kind, true in product(("bool", "float", "int"), ("attend", "hide"))]
_USUAL = {"true": "attend", "kind": "bool"}
_PADDING = re.compile(r"pad", re.IGNORECASE)
_LATER = re.compile(r"look_?ahead|causal|future|subsequent|later|no_?peek|combined", re.IGNORECASE)
"""How masks are called that hide later positions."""
_IN_TURN = ("src_mask", "tgt_mask", "memory_mask")
_SIDES = {"memory": r"^mem|cross", "tgt": r"^(tgt|trg|target|dec)", "src": r"^(src|source|enc)"}
"""How names of masks begin, by the side whose keys they hide."""
_HALVES = "it has no call of its own: decode is called with what encode returns"
_AS_TRIED = "hides, as tried; if True should mean visible, it is a mistake"
_HIDES = f"True in {{}} {_AS_TRIED}"
_WRONG_WAY = "{} hides where it is 1, and the code that passes it gives 1 for words: taken for a mistake"
_SHOWING = {"attention_mask", "input_mask"}
"""Names of what is given with ids, and is 1 where a model may look, as BERT's."""
_SHOWS = "{} hides where it is 1, and by its name shows there: right if its callers mean it so, else a mistake"
_MEANT = 'if 1 is to hide, say so in conform.toml: [components.{}] masks = {{ mask = {{ true = "hide" }} }}, for {}'
_LACKS_ARGUMENTS = re.compile(r"missing \d+ required (positional|keyword-only) argument")
"""How Python begins to say that a call lacks arguments."""
_TARGET_AND_MEMORY = ("x", "memory")
_LONGER = 2
_MIN_SIZES = 2
"""Sizes that a function must take to be one that makes a component, besides its name."""


def choose(
    component: Component, items: Sequence[Item], bench: Bench, search: Search, taken: Sequence[str], path: str = ""
) -> Proposal | None:
    """Return the best proposal for a component, None if nothing looks like it. `path` fixes the candidate."""
    best: Proposal | None = None
    for item in sorted(items, key=lambda item: -_taken(component, item)):
        if item.path != path if path else item.path in taken or not _may_be(component, item):
            continue
        try:
            for proposal in _answering(component, item, items, bench):
                proposal.rank = _fit(proposal, item, bench, search)
                best = proposal if best is None or proposal.rank > best.rank else best
                if best.rank == _WHOLLY:
                    return _kept(best, bench, search)
                if proposal.mistakes:
                    break  # all else is explained: no other way to build or call it gives a variant's numbers
        except WorkerLost as lost:
            bench.give_up(item.path, lost)
    return _kept(best, bench, search) if best is not None else None


def _taken(component: Component, item: Item) -> int:
    """Return how many inputs an embedding of several takes: the part that adds words, positions and segments."""
    several = component.name == "BertEmbeddings"
    return min(len(component.inputs), len(list(takewhile(_may_take_an_input, item.call or ())))) if several else 0


def _may_be(component: Component, item: Item) -> bool:
    if item.kind == "function":
        return _makes(component, item)
    if item.kind != "class" or item.call is None:
        return False
    if component.name == "Transformer" and _is_two_sided(item):
        return True
    if component.name == "CrossAttention":
        return serves(component, {"found": True, "call": item.call})
    return item.name in {component.export, *component.further} or named(component, item.name)


def _makes(component: Component, item: Item) -> bool:
    """Whether a function takes the sizes of a component: `build_transformer(src_vocab_size, tgt_vocab_size, ...)`."""
    takes = list(item.call or ())
    sizes = {meaning(p["name"], [argument.name for argument in component.arguments]) for p in takes}
    if component.name == "Transformer" and {"src_vocab_size", "tgt_vocab_size"} <= sizes:
        return True
    reads = bool(takes) and meaning(takes[0]["name"], component.inputs) is not None
    return not reads and len(sizes - {None}) >= _MIN_SIZES and named(component, item.name)


def _is_two_sided(item: Item) -> bool:
    """Whether a class is called with a source and a target, whatever its name is; some make the target of labels."""
    taken = item.call or ()
    named = [p["name"] for p in taken if p["required"] or p["name"].startswith("decoder_")]
    return {"src", "tgt"} <= {meaning(name, ("src", "tgt")) for name in named}


def _answering(component: Component, item: Item, items: Sequence[Item], bench: Bench) -> Iterator[Proposal]:
    """Yield candidates that can be built and called and give an array of the contract's shape."""
    makes = item.kind == "function"
    given: list[Construction | None] = [*([] if makes else [None]), *ways(component, item, items, bench.parts)]
    called = [o for o in items if o.kind == "class" and _may_be(component, o)] if makes else [item]
    calls = [call for other in called for call in _calls(component, other)]
    for layout, way, call in product(_LAYOUTS, given, list({repr(call): call for call in calls}.values())):
        table: dict[str, Any] = {"path": item.path, **({"factory": True} if makes else {}), **layout}
        construct = by_trial(component, item, items, way, call, bench) if way and way.settings else None
        if way and way.settings and construct is None:
            continue
        table |= {"construct": construct or way.construct} if way else {}
        table |= {"globals": dict(way.globals)} if way and way.globals else {}
        table |= {"limits": dict(way.fixed)} if way and way.fixed else {}
        table |= {"call": call} if call else {}
        try:
            table |= _output(component, table, bench)
            if way and "d_ff" in required_sizes(component) and "d_ff" not in way.given() | names_in(construct or {}):
                table["limits"] = {**table.get("limits", {}), "d_ff": inner_width(component.name, table, bench)}
        except WorkerLost:
            raise
        except TROUBLE as problem:
            bench.refusals.append(f"{item.path}: {problem}")
            continue
        if turned := _memory_first(component, item, table, bench):
            table["call"] = turned
        by_place = isinstance(table.get("call"), list)
        doubts = [
            *(way.doubts if way else ()),
            *(["its call arguments are known only by position"] if by_place else ()),
            *([_HALVES] if any(other.memory for other in called) else ()),
            *([f"its call returns states, no logits: its part {table['head']} is applied"] if "head" in table else ()),
        ]
        yield Proposal(component.name, table, doubts)
        if hiding := _required_to_hide(component, item, table, bench):
            yield Proposal(component.name, {**table, "masks": hiding}, [*doubts, _HIDES.format(", ".join(hiding))])


def _output(component: Component, table: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Return which part of its result has the contract's shape; nothing for an array, or what the kit takes anyway.

    Raises what is in TROUBLE if there is none.
    """
    try:
        bench.answers(component.name, table)
    except WorkerLost:
        raise
    except TROUBLE as refused:
        for key in bench.parts_of_result(component.name, table):
            try:
                bench.answers(component.name, {**table, "output": key})
            except WorkerLost:
                raise
            except TROUBLE:
                continue
            return {"output": key}
        if isinstance(refused, ImplementationFailure) and _LACKS_ARGUMENTS.search(refused.message):
            raise  # which no head gives it
        if head := own_head(component.name, table, bench):
            return {"head": head}
        raise
    return {}


def _memory_first(component: Component, item: Item, table: Mapping[str, Any], bench: Bench) -> list[str]:
    """Return the call of code that takes the memory before the target, seen from the length of its result; or nothing.

    Only where the memory is longer than the target do they differ in it.
    """
    if component.inputs[:2] != _TARGET_AND_MEMORY or not _raises(component, table, bench):
        return []
    rest = [p["name"] for p in takewhile(_may_take_an_input, item.call or ())][2:]
    by_place, by_name = component.inputs[2 : 2 + len(rest)], [meaning(name, component.inputs[2:]) for name in rest]
    others = by_name if None not in by_name and len({*by_name}) == len(rest) else by_place
    call = [*_TARGET_AND_MEMORY[::-1], *map(str, others)]
    return [] if _raises(component, {**table, "call": call}, bench) else call


def _raises(component: Component, table: Mapping[str, Any], bench: Bench) -> bool:
    """Whether a memory that is longer than the target is refused, or gives another shape than the target's."""
    try:
        bench.answers(component.name, table, further=_LONGER)
    except WorkerLost:
        raise
    except TROUBLE:
        return True
    return False


def _required_to_hide(
    component: Component, item: Item, table: Mapping[str, Any], bench: Bench
) -> dict[str, dict[str, str]]:
    """Return masks in which True hides, if a call needs one: then one that should hide nothing would hide all."""
    if not any(p["required"] and "mask" in p["name"].lower() for p in item.call or ()):
        return {}
    used = bench.subject(component.name, table).bound.call.names()
    return {name: {"true": "hide"} for name in MASKS if name in used}


def _calls(component: Component, item: Item) -> list[list[str] | dict[str, str] | None]:
    """Return how it may be called: by names, or in the contract's order if not all names are known."""
    taken = takewhile(_may_take_an_input, item.call or ())
    by_place = list(component.inputs[: len(list(taken))])
    known = {meaning(p["name"], component.inputs) or KNOWN.get(p["name"]) for p in item.call or ()} - {None}
    read = [call for call in (_padding_apart(component, item), _three_masks(component, item)) if call]
    found: list[list[str] | dict[str, str] | None] = [None, by_place]
    return [*read, *(found if len(known) >= len(by_place) else found[::-1])]


def _padding_apart(component: Component, item: Item) -> dict[str, str]:
    """Return the call of code whose required masks say padding apart from causality; nothing for other code."""
    required = [p["name"] for p in item.call or () if p["required"]]
    masks = [name for name in required if "mask" in name.lower()]
    padding = [name for name in masks if _PADDING.search(name)]
    if not padding or len(padding) == len(masks):
        return {}
    call: dict[str, str] = {}
    for name in required:
        side = next((side for side, words in _SIDES.items() if re.search(words, name.lower())), "")
        if name in padding:
            call[name] = f"{side}_padding" if side else "padding"
        elif name in masks:
            call[name] = "causality" if side == "tgt" or _LATER.search(name) else "None"
        else:
            call[name] = meaning(name, component.inputs) or "None"
    return call


def _three_masks(component: Component, item: Item) -> dict[str, str]:
    """Return the call of a whole that needs a mask for each of its attentions, the target's second; or nothing."""
    required = [p["name"] for p in item.call or () if p["required"]]
    masks = [name for name in required if "mask" in name.lower()]
    if not {"src", "tgt"} <= set(component.inputs) or len(masks) != len(_IN_TURN):
        return {}
    if not _LATER.search(masks[1]) and not re.search(_SIDES["tgt"], masks[1].lower()):
        return {}
    inputs = {name: meaning(name, ("src", "tgt")) or "None" for name in required if name not in masks}
    return {**inputs, **dict(zip(masks, _IN_TURN, strict=True))}


def _may_take_an_input(parameter: Mapping[str, Any]) -> bool:
    return parameter["kind"] == "positional" and bool(parameter["required"] or parameter["default"] == "None")


def _fit(proposal: Proposal, item: Item, bench: Bench, search: Search) -> int:
    """Return how well it fits: whether some variant of the definition gives its numbers, also with masks."""
    name = proposal.component
    if not search.examines(name):
        layer = bench.parts.get(STACKS.get(name, ""), {})  # it takes masks like its layers
        proposal.table |= {"masks": layer["masks"]} if "masks" in layer else {}
        proposal.matched = True
        return _WHOLLY
    alone = search.fork()
    try:
        look_inside(proposal, bench, alone)
        if proposal.mistakes:
            masks = (masks_that_hide if name == "Transformer" else masks_that_hide_rows)(name, proposal.table, bench)
            proposal.table |= {"masks": masks} if masks else {}
            return 1
        if "src" in bench.subject(name, proposal.table).bound.component.inputs:
            masks = masks_that_hide(name, proposal.table, bench)
            proposal.table |= {"masks": masks} if masks else {}
        place_weights(proposal, bench, alone)
        alone.look_at(_probed(name, proposal.table, bench, search))
    except WorkerLost:
        raise
    except TROUBLE:
        return 0
    proposal.matched = alone.found(name) is not None
    if not proposal.matched:
        return 0
    return _WHOLLY if _found_masks(proposal, item, bench, alone) else 1


def _kept(proposal: Proposal, bench: Bench, search: Search) -> Proposal:
    """Store what is known about it, for the components that contain it."""
    limit_to_tables(proposal, bench)
    if hidden := hidden_by_what_shows(proposal.table, bench.export(proposal.component, proposal.table["path"])["call"]):
        if shows_words(bench.root, hidden):
            proposal.table = _as_its_callers_mean(proposal.table)
            proposal.doubts = [doubt for doubt in proposal.doubts if not doubt.endswith(_AS_TRIED)]
            proposal.doubts.append(_WRONG_WAY.format(hidden))
        else:
            proposal.left_open = (_SHOWS.format(hidden), _MEANT.format(proposal.component, hidden))
    bench.parts[proposal.component] = proposal.table
    open_ = not proposal.matched and not proposal.mistakes
    if open_ and search.examines(proposal.component) and _fits_after_all(proposal, bench, search):
        proposal.matched = True
    elif open_:
        why = "no variant of the definition gives its numbers"
        proposal.doubts.append(f"{why}: chosen by its name and shape alone")
    elif proposal.matched and search.examines(proposal.component):
        search.look_at(_probed(proposal.component, proposal.table, bench, search))
    return proposal


def _as_its_callers_mean(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table in whose masks 1 shows, as the code that passes them means it: to hide there is a mistake."""
    masks = {name: {key: value for key, value in form.items() if key != "true"}
             for name, form in table["masks"].items()}  # fmt: skip
    return {**table, "masks": {name: form for name, form in masks.items() if form}}


def hidden_by_what_shows(table: Mapping[str, Any], call: Sequence[Mapping[str, Any]] | None) -> str:
    """Return the argument of ids that hides where it is True or 1, by a name that says that it shows; or nothing."""
    hides = any(form.get("true") == "hide" for form in table.get("masks", {}).values())
    named = [p["name"] for p in call or ()]
    reads = any(meaning(name, ("ids",)) for name in named)
    return next((name for name in named if hides and reads and name in _SHOWING), "")


def _fits_after_all(proposal: Proposal, bench: Bench, search: Search) -> bool:
    """Whether all assignments of its weights, not only the likely ones, show a variant that gives its numbers."""
    try:
        subject = bench.probed(bench.subject(proposal.component, proposal.table), search.known(), tries=None)
        if not subject.bound.fits:
            return False
        search.look_at(subject)
    except WorkerLost:
        raise
    except TROUBLE:
        return False
    return search.found(proposal.component) is not None


def _probed(name: str, table: Mapping[str, Any], bench: Bench, search: Search) -> Subject:
    tries = {"tries": _MIN_SIZES} if name in search.suggested else {}
    return bench.probed(bench.subject(name, table), search.known(), **tries)


def _found_masks(proposal: Proposal, item: Item, bench: Bench, search: Search) -> bool:
    """Find the kind of its masks, and what True means in them; return whether any gives the definition's numbers."""
    variant = search.found(proposal.component)
    declared = {**proposal.table, "variant": variant.differences(base_of(proposal.component)) if variant else {}}
    names = [name for name in NAMES if name in bench.subject(proposal.component, proposal.table).bound.call.names()]
    if not names and "tgt_mask" not in bench.subject(proposal.component, proposal.table).bound.component.inputs:
        return True  # it hides padding by itself
    for masks in _masks(names):
        table = {**declared, "masks": masks} if masks else declared
        if not _agrees(proposal.component, table, bench, search):
            continue
        if masks:
            _declare(proposal, item, masks, bench)
        return True
    said = f"no {' and '.join(names)} gives the definition's result: its meaning is left open"
    proposal.doubts.append(f"{said}; docs/encoder-decoder.md says how to declare it")
    return False


def _masks(names: Sequence[str]) -> Iterator[dict[str, dict[str, str]]]:
    """Yield possible meanings of masks: as in the contract, all in another form, each with another polarity."""
    yield {}
    if len(names) > 1 and "causality" in names:  # numbers for later positions, beside a padding that says true or false
        padding = [name for name in names if name != "causality"]
        yield from (
            {"causality": {"kind": "float"}, **dict.fromkeys(padding, form)}
            for form in ({"true": "hide"}, {"true": "attend"})
        )
    forms = [dict.fromkeys(names, form) for form in _FORMS if form != _USUAL]
    forms += [dict(zip(names, mixed, strict=True)) for mixed in product(_FORMS[:2], repeat=len(names))]
    for form in forms if names else ():
        yield {name: {key: value for key, value in one.items() if value != _USUAL[key]}
               for name, one in form.items() if one != _USUAL}  # fmt: skip


def _declare(proposal: Proposal, item: Item, masks: Mapping[str, Mapping[str, str]], bench: Bench) -> None:
    """Declare masks; where True hides in code that follows the contract otherwise, offer it, unless its parts agree."""
    parts = [form.get("true") for table in bench.parts.values() for form in table.get("masks", {}).values()]
    hiding = [name for name, form in masks.items() if form.get("true") == "hide"]
    theirs = {p["name"] for p in item.call or ()}
    if hiding and set(hiding) <= theirs and item.name == proposal.component and "hide" not in parts:
        why = f"True in {', '.join(hiding)} hides, but in the contract True means visible"
        proposal.offered.append((line("masks", {name: {"true": "hide"} for name in hiding}), why))
        proposal.doubts.append(f"{why}. Kept as a mistake; if it is intended, declare")
        return
    proposal.table["masks"] = {name: dict(form) for name, form in masks.items()}
    if hiding:
        proposal.doubts.append(_HIDES.format(", ".join(hiding)))


def _agrees(name: str, table: Mapping[str, Any], bench: Bench, search: Search) -> bool:
    """Whether it gives the definition's result with masks that hide something."""
    try:
        subject = _probed(name, table, bench, search)
        instance = subject.build(**bench.sizes).randomize(Draw(0, "adapt masks"))
        inputs = with_masks(instance, Draw(0, "adapt masks"))
        out, want = instance(*inputs), instance.expected(*inputs)
    except WorkerLost:
        raise
    except TROUBLE:
        return False
    return bool(np.abs(out - want).max() < _CLOSE * np.abs(want).max())
