"""One component: which candidate it is and how, tried in the worker; what the numbers leave open is a doubt.

Evidence, the strongest first: the definition in some variant gives the candidate's own numbers; it is called so, and
what it returns has the contract's shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from conformkit.conformance.adapting.bench import TROUBLE, Bench, missing_setting
from conformkit.conformance.adapting.calling import Call, call_of
from conformkit.conformance.adapting.candidates import LIKELY, ranked
from conformkit.conformance.adapting.causality import settled
from conformkit.conformance.adapting.construction import Item, Way, ways
from conformkit.conformance.adapting.masks import of_attention
from conformkit.conformance.adapting.meanings import LONGEST, constant, meant, sizes_of
from conformkit.conformance.binding.probe import probe
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.subject import Subject
from conformkit.conformance.undeclared import Search
from conformkit.spec.components import Component
from conformkit.spec.variants import CANONICAL, FAMOUS

__all__ = ["Proposal", "choose"]

_SETTINGS = 24
_EVEN = {"d_model": 48, "num_heads": 4}
"""For heads that share keys, and heads of even width."""
_WIDTHS = {48: "4 * d_model", 24: "2 * d_model", 36: "3 * d_model", 32: "8 * d_model // 3", 12: "d_model"}
"""By extents of parameters where d_model is 12, what d_ff is where nobody is asked for it."""


@dataclass(slots=True)
class Proposal:
    """What conform.toml would say of a component: its table, what is unsure, and lines that only its author may add."""

    component: str
    table: dict[str, Any]
    doubts: list[str] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)
    """A line that would make a difference, and what speaks for it."""
    matched: bool = False
    """Whether the definition in some variant gives its numbers."""
    rank: int = 0


def choose(
    component: Component, items: Sequence[Item], bench: Bench, search: Search, taken: Sequence[str], path: str = ""
) -> Proposal | None:
    """Return the best proposal for a component, None where nothing looks like it. `path` fixes the candidate."""
    fixed = [(LIKELY, item) for item in items if item.path == path]
    candidates = fixed if path else ranked(component, items, taken)
    best: Proposal | None = None
    for rank, item in candidates:
        for proposal in _proposals(component, item, items, bench):
            proposal.rank = rank
            proposal.matched = _matches(proposal, bench, search)
            if proposal.matched:
                return _kept(proposal, bench, search)
            if rank >= LIKELY and component.name != "SelfAttention" and (best is None or rank > best.rank):
                best = proposal
    if best is not None:
        best.doubts.append("no variant of the definition gives its numbers: taken for it by its name and shape alone")
        return _kept(best, bench, search)
    return None


def _kept(proposal: Proposal, bench: Bench, search: Search) -> Proposal:
    """Remember what is known of it, for the components that it is part of."""
    if proposal.component != "ScaledDotProductAttention":
        try:
            search.look_at(_probed(proposal, bench, search))
        except TROUBLE:
            return proposal
    return proposal


def _matches(proposal: Proposal, bench: Bench, search: Search) -> bool:
    """Whether the definition in some variant gives its numbers."""
    if proposal.component == "ScaledDotProductAttention":
        return proposal.matched
    try:
        alone = search.fork()
        alone.look_at(_probed(proposal, bench, search))
    except WorkerLost:
        raise
    except TROUBLE:
        return False
    return alone.found(proposal.component) is not None or _is_famous(proposal, bench, search)


def _is_famous(proposal: Proposal, bench: Bench, search: Search) -> bool:
    """Whether a whole whose parts nobody knows is a well-known model: then its variant is declared."""
    if proposal.component not in {"TinyTransformerLM", "TransformerBlock"} or search.known():
        return False
    table = proposal.table
    for variant in FAMOUS.values():
        own = variant.but(kv_heads="num_heads") if "kv_heads" in _names(table["construct"]) else variant
        own = own.but(norm_eps=CANONICAL.norm_eps) if str(CANONICAL.norm_eps) in _names(table["construct"]) else own
        proposal.table = {**table, "variant": own.differences()}
        try:
            subject = bench.subject(proposal.component, proposal.table)
            subject.tries = None
            if _has_as_many(subject) and _fits(subject, bench):
                return True
        except WorkerLost:
            raise
        except TROUBLE:
            continue
    proposal.table = table
    return False


def _has_as_many(subject: Subject) -> bool:
    """Whether it has as many trainable numbers as the definition in its variant."""
    instance = subject.build()
    return instance.count() == sum(math.prod(p.shape) for p in instance.canonical.values())


def _fits(subject: Subject, bench: Bench) -> bool:
    probe(subject, ("float64", "float32"), gradients=bench.link.is_torch, known={})
    return subject.bound.fits


def _probed(proposal: Proposal, bench: Bench, search: Search) -> Subject:
    subject = bench.subject(proposal.component, proposal.table)
    probe(subject, ("float64", "float32"), gradients=bench.link.is_torch, known=search.known())
    return subject


def _proposals(component: Component, item: Item, items: Sequence[Item], bench: Bench) -> Iterator[Proposal]:
    """Yield what can be built and called as the component and returns its shape."""
    if component.name == "ScaledDotProductAttention":
        found = of_attention(item, call_of(component, item.call), bench)
        if found is not None:
            yield Proposal(component.name, found.table, found.doubts, found.offered, matched=found.matched)
        return
    call = call_of(component, item.call if item.kind == "class" else None)
    heads = any(argument.name == "num_heads" for argument in component.arguments)
    for way, sizes in product(ways(component, item, items), ({}, _EVEN) if heads else ({},)):
        bench.sizes = sizes
        proposal = _built(component, item, way, call, bench)
        if proposal is not None and sizes:
            proposal.doubts.append("it refuses 3 heads; where its variant does not say why, declare limits")
        if proposal is not None:
            yield proposal


def _built(component: Component, item: Item, way: Way, call: Call, bench: Bench) -> Proposal | None:
    """Return the proposal of one way to construct it; None where it can't be built, called, or has another shape."""
    table: dict[str, Any] = {"path": item.path}
    table |= {"factory": True} if item.kind == "function" else {}
    construct = _with_settings(component, item, way, call, bench) if way.settings else way.construct
    if construct is None:
        return None
    proposal = Proposal(component.name, {**table, "construct": construct}, list(way.doubts))
    if way.settings:
        proposal.doubts.append(f"the settings in {way.settings} are those that the code asked for when it was tried")
    names = way.names or _names(construct)
    try:
        _limit_inner(component, proposal, names, call, bench)
        settled(component, proposal, call, names, bench)
        if not _take_output(component, proposal, bench):
            return None
        _limit_length(component, proposal, bench)
    except WorkerLost:
        raise
    except TROUBLE as problem:
        bench.refusals.append(f"{item.path}: {problem}")
        return None
    return proposal


def _with_settings(component: Component, item: Item, way: Way, call: Call, bench: Bench) -> dict[str, Any] | None:
    """Find out what a settings argument must hold: give it nothing, and add what the code asks for."""
    for plain in (True, False):
        inner: dict[str, Any] = {}
        for _ in range(_SETTINGS):
            given = dict(inner) if plain else {"object": "types:SimpleNamespace", "arguments": dict(inner)}
            construct: dict[str, Any] = {way.settings: given, **way.construct}
            name = _lacking(component, {"path": item.path, "construct": construct}, call, bench)
            if not name or name in inner:
                break
            value = meant(name, sizes_of(component))
            value = constant(name, component) if value is None else value
            inner[name] = False if value is None else value
        if not name and "d_model" in inner.values():
            return construct
    return None


def _lacking(component: Component, table: dict[str, Any], call: Call, bench: Bench) -> str:
    """Return the setting that the code asks for in vain, or nothing."""
    try:
        bench.shown(component.name, {**table, "call": call.written(mask=call.required)})
    except WorkerLost:
        raise
    except TROUBLE as problem:
        return missing_setting(problem)
    return ""


def _names(construct: dict[str, Any]) -> frozenset[str]:
    found: set[str] = set()
    for value in construct.values():
        found |= _names(value) if isinstance(value, dict) else {str(value).removeprefix("not ")}
    return frozenset(found)


def _limit_inner(component: Component, proposal: Proposal, names: frozenset[str], call: Call, bench: Bench) -> None:
    """Where nobody asks for the width inside, it follows from the other; where nobody asks for heads, it is one."""
    own = {argument.name for argument in component.arguments}
    limits: dict[str, Any] = {}
    if "num_heads" in own and not {"num_heads", "d_model // num_heads"} & names:
        limits["num_heads"] = 1
        proposal.doubts.append("no argument says how many heads there are: taken for one")
    if "num_layers" in own and "num_layers" not in names:
        limits["num_layers"] = 1
        proposal.doubts.append("no argument says how many blocks there are: taken for one")
    if limits:
        proposal.table["limits"] = limits
    if "d_ff" in own and "d_ff" not in names:
        table = {**proposal.table, "call": call.written(mask=call.required)}
        extents = bench.extents(component.name, table)
        scale = bench.sizes.get("d_model", 12) // 12
        width = next((text for extent, text in _WIDTHS.items() if extent * scale in extents), "4 * d_model")
        proposal.table["limits"] = {**limits, "d_ff": width}


def _take_output(component: Component, proposal: Proposal, bench: Bench) -> bool:
    """Declare which part of what comes back is the output; whether there is one of the right shape."""
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


def _limit_length(component: Component, proposal: Proposal, bench: Bench) -> None:
    """Where a longest input was made up and longer ones are refused, say so."""
    if LONGEST not in _constants(proposal.table["construct"]):
        return
    try:
        if bench.shown(component.name, proposal.table, tokens=LONGEST + 1).fits:
            return
    except WorkerLost:
        raise
    except TROUBLE:
        pass
    proposal.table["limits"] = {**proposal.table.get("limits", {}), "tokens": {"max": LONGEST}}


def _constants(value: Any) -> list[Any]:
    return [leaf for inner in value.values() for leaf in _constants(inner)] if isinstance(value, dict) else [value]
