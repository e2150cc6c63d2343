"""Choose the candidate for one component by trying it in the worker; what the numbers leave open is a doubt.

Evidence, the strongest first: some variant of the definition gives the candidate's numbers; its name matches and its
result has the contract's shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.calling import Call, call_of, numbered, without_a_flag
from conformkit.conformance.discovery.candidates import LIKELY, named, ranked
from conformkit.conformance.discovery.causality import looks_ahead, settled
from conformkit.conformance.discovery.construction import Construction, names_in, numbers, ways
from conformkit.conformance.discovery.evenness import limit_to_even
from conformkit.conformance.discovery.fitting import (
    free_length,
    limit_inner,
    limit_length,
    limit_rows,
    limit_to_tables,
    pass_targets,
    take_output,
    tell_nature,
)
from conformkit.conformance.discovery.handed import handed
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.looking import look_inside
from conformkit.conformance.discovery.masks import of_attention
from conformkit.conformance.discovery.proposal import NAME_ALONE, Proposal
from conformkit.conformance.discovery.settings import by_trial
from conformkit.conformance.discovery.windows import declare_window
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.subject.component import Subject
from conformkit.spec.components import Component, components_of
from conformkit.spec.components import component as component_of
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant

__all__ = ["choose"]

_TRIES_IF_SEEN = 2
"""Assignments of weights to try with the canonical variant where a call says which one it is."""
_ALONE: tuple[dict[str, str], ...] = ({"layout": "one sequence"},)
_LAYOUTS: tuple[dict[str, str], ...] = ({}, {"layout": "sequence first"}, *_ALONE)
_ENCODES = re.compile(
    r"\b(no|not|non|without)[ -]?causal|bidirectional|\bencoders?\b|\bimages?\b|vision|\bvit\b|\bbert\b",
    re.IGNORECASE,
)
"""What is said of code that reads whole inputs."""
_SEEN = "MultiHeadAttention"
"""What is recognized whatever its name is, where one call shows all of it and one mistake: it is like nothing else."""
_OF_PARTS = {"MultiHeadAttention": ("qkv_bias", "output_bias"), "FeedForward": ("activation", "gated", "ffn_bias")}
"""Choices by which a well-known model is not that of parts that were found."""
_HEAD: Mapping[str, Any] = {
    "object": "torch.nn:Linear",
    "arguments": {"in_features": "d_model", "out_features": "vocab_size", "bias": False},
}
_REFUSES = "it refuses 3 heads; if its variant does not explain that, declare limits"
_STATES = "it returns states, no logits: judged with a head of the kit's; if the code has one, name it in `head`"
_HEAD_WIDTHS = (8, 16, 32, 64, 128)
"""Usual widths of heads that no argument sets."""
_EVEN = {"d_model": 48, "num_heads": 4}
"""For heads that share keys, and heads of even width."""


def choose(
    component: Component, items: Sequence[Item], bench: Bench, search: Search, taken: Sequence[str], path: str = ""
) -> Proposal | None:
    """Return the best proposal for a component, None if nothing looks like it. `path` fixes the candidate."""
    fixed = [(LIKELY, item) for item in items if item.path == path]
    candidates = fixed if path else ranked(component, items, taken, bench.parts)
    best: Proposal | None = None
    alone = [(rank, item, False) for rank, item in candidates]
    for rank, item, headless in [*alone, *_without_a_head(component, candidates, bench)]:
        if rank < LIKELY and (bench.wary or (best is not None and _is_another(component, item))):
            continue
        try:
            for proposal in _proposals(component, item, items, bench, headless=headless):
                proposal.rank = rank
                proposal.matched = _matches(proposal, bench, search)
                if proposal.matched or (proposal.mistakes and (rank >= LIKELY or component.name == _SEEN)):
                    return _kept(proposal, bench, search)
                if rank >= LIKELY and component.name != "SelfAttention" and (best is None or rank > best.rank):
                    best = proposal
        except WorkerLost as lost:
            bench.give_up(item.path, lost)
    if best is not None:
        best.doubts.append(NAME_ALONE)
        return _kept(best, bench, search)
    return None


def _is_another(component: Component, item: Item) -> bool:
    """Whether its name is that of another component: tried as this one it would be built and called in vain."""
    others = (other for other in components_of(component.profile).values() if other.name != component.name)
    return not named(component, item.name) and any(named(other, item.name) for other in others)


def _without_a_head(
    component: Component, candidates: Sequence[tuple[int, Item]], bench: Bench
) -> list[tuple[int, Item, bool]]:
    """Return candidates for a model of which none has a head: scripts may apply one to the states that it returns."""
    if not component.is_language_model or not bench.implementation.is_torch:
        return []
    return [(rank, item, True) for rank, item in candidates if item.kind == "class"]


def _kept(proposal: Proposal, bench: Bench, search: Search) -> Proposal:
    """Store what is known about it, for the components that contain it."""
    name = proposal.component
    bench.parts[name] = proposal.table
    tell_nature(proposal, bench)
    limit_rows(proposal, bench)
    limit_to_tables(proposal, bench)
    if not proposal.matched or name == "ScaledDotProductAttention":  # it says nothing about a whole
        return proposal
    try:
        search.look_at(_probed(proposal, bench, search))
    except TROUBLE:
        return proposal
    found = search.found(name)
    declare_window(proposal, bench, found.window if found is not None else 0)
    bench.parts[name] = proposal.table
    return proposal


def _matches(proposal: Proposal, bench: Bench, search: Search) -> bool:
    """Whether some variant of the definition gives its numbers."""
    if proposal.component == "ScaledDotProductAttention":
        return proposal.matched
    try:
        look_inside(proposal, bench, search)
        if proposal.mistakes:
            return False
        alone = search.fork()
        alone.look_at(_probed(proposal, bench, search))
    except WorkerLost:
        raise
    except TROUBLE:
        return False
    return alone.found(proposal.component) is not None or _is_famous(proposal, bench, search)


def _is_famous(proposal: Proposal, bench: Bench, search: Search) -> bool:
    """Whether a block with unknown parts, or a model, is a well-known one: then its variant is declared."""
    is_model = component_of(proposal.component).is_language_model
    if not is_model and proposal.component != "TransformerBlock":
        return False
    known = {part: found for part in _OF_PARTS if (found := search.found(part))}
    if known and not is_model:
        return False
    table = proposal.table
    names = names_in(table.get("construct", {}))
    for variant in _well_known():
        if any(getattr(variant, c) != getattr(found, c) for part, found in known.items() for c in _OF_PARTS[part]):
            continue
        own = variant.but(kv_heads="num_heads") if "kv_heads" in names else variant
        own = own.but(norm_eps=CANONICAL.norm_eps) if str(CANONICAL.norm_eps) in names else own
        proposal.table = {**table, "variant": own.differences()}
        try:
            subject = bench.subject(proposal.component, proposal.table)
            if _has_as_many(subject) and _fits(subject, bench):
                return True
        except WorkerLost:
            raise
        except TROUBLE:
            continue
    proposal.table = table
    return False


def _well_known() -> Iterator[Variant]:
    """Yield the variants of well-known models, each also with an untied head and with the other rotation."""
    for famous in FAMOUS.values():
        yield famous
        yield famous.but(tied=False, head_bias=True)
        if famous.positions == "rotary":
            yield famous.but(rotary_layout="pairs" if famous.rotary_layout == "halves" else "halves")


def _has_as_many(subject: Subject) -> bool:
    """Whether it has as many trainable numbers as its variant of the definition."""
    instance = subject.build()
    return instance.count() == sum(math.prod(p.shape) for p in instance.canonical.values())


def _fits(subject: Subject, bench: Bench) -> bool:
    return bench.probed(subject, {}, tries=None).bound.fits


def _probed(proposal: Proposal, bench: Bench, search: Search) -> Subject:
    """Find its weights; those of code that looks at later positions, as if that were meant: no other choice fits it."""
    seen = search.suggested.get(proposal.component)
    tries = {"tries": _TRIES_IF_SEEN} if seen else {}
    return bench.probed(bench.subject(proposal.component, _table(proposal)), search.known(), **tries)


def _table(proposal: Proposal) -> dict[str, Any]:
    return {**proposal.table, **({"causal": "never"} if looks_ahead(proposal) else {})}


def _proposals(
    component: Component, item: Item, items: Sequence[Item], bench: Bench, *, headless: bool = False
) -> Iterator[Proposal]:
    """Yield candidates that can be built and called as the component and return its shape.

    `headless`: a model that returns states; a head of torch's is applied to them.
    """
    if component.name == "ScaledDotProductAttention":
        if found := of_attention(item, without_a_flag(call_of(component, item.call), item.call), bench):
            remarks = found.doubts, found.offered, found.mistakes
            yield Proposal(component.name, found.table, *remarks, matched=found.matched)
        return
    own = call_of(component, item.call if item.kind == "class" else None)
    heads = any(argument.name == "num_heads" for argument in component.arguments)
    calls = [call for given in handed(component, own, items) for call in numbered(given)]
    outside = {"head": _HEAD} if headless else {}
    tried = [
        (way, call)
        for way in ways(component, item, items, bench.parts)
        for call in ([way.weighted.call] if way.weighted else calls)
    ]
    settable = False
    for (way, call), sizes in product(tried, ({}, _EVEN) if heads else ({},)):
        if settable and not way.globals:
            continue  # at the author's sizes alone, a mistake may be right by chance
        bench.sizes = sizes
        built = False
        for layout in _LAYOUTS:
            if built and layout in _ALONE:
                break  # called for each sequence, what mixes the sequences of a batch by mistake would look right
            proposal = _built(component, item, items, way, call, bench, {**layout, **outside})
            if proposal is None:
                continue
            proposal.doubts += [_STATES] if headless else []
            proposal.doubts += [_REFUSES] if sizes else []
            built = True
            settable = settable or bool(way.globals)
            yield proposal
            if not bench.mixes_rows(component.name, proposal.table):
                break
    if heads and not headless:
        yield from _of_heads_as_wide(component, item, items, tried, bench)


def _of_heads_as_wide(
    component: Component, item: Item, items: Sequence[Item], tried: Sequence[tuple[Construction, Call]], bench: Bench
) -> Iterator[Proposal]:
    """Yield candidates without an argument for heads, whose width is a number of the code: the smallest that works."""
    for way, call in tried:
        known = way.given()
        if way.weighted is not None or known & {"num_heads", "d_model // num_heads"} or "d_model" in way.fixed:
            continue
        for width in _HEAD_WIDTHS:
            bench.sizes = {"d_model": 3 * width}  # twice one width is once another
            of_the_code: dict[str, int | str | dict[str, int]] = {
                "num_heads": f"d_model // {width}",
                "d_model": {"multiple_of": width},
            }
            fixed = replace(way, fixed={**way.fixed, **of_the_code})
            proposal = _built(component, item, items, fixed, call, bench, {})
            if proposal is not None:
                proposal.doubts.append(f"no argument sets the number of heads: each is taken to be {width} wide")
                yield proposal
                break


def _built(
    component: Component, item: Item, items: Sequence[Item], way: Construction, call: Call, bench: Bench,
    layout: Mapping[str, Any],
) -> Proposal | None:  # fmt: skip
    """Return the proposal for one way to construct it; None if that fails or gives another shape."""
    table: dict[str, Any] = {"path": item.path}
    table |= {"factory": True} if item.kind == "function" and (way.weighted is None or way.construct) else {}
    called = call.written(mask=call.required)
    construct = by_trial(component, item, items, way, called, bench) if way.settings else way.construct
    if construct is None:
        return None
    made = {"construct": construct} if way.weighted is None or construct else {}
    made |= {"globals": dict(way.globals)} if way.globals else {}
    made |= {"parameters": way.weighted.parameters} if way.weighted is not None else {}
    proposal = Proposal(component.name, {**table, **made, **layout}, list(way.doubts))
    proposal.compared = bench.compares(item.name)
    if way.settings:
        proposal.doubts.append(f"the settings in {way.settings} were found by trying: the code needed them")
    names = names_in(made) | names_in(call.named)
    if way.fixed:
        proposal.table["limits"] = dict(way.fixed)
    if way.mask:
        proposal.table["mask"] = dict(way.mask)
    longest = None if way.globals else numbers(item, items, ("block_size",)).get("block_size")
    try:
        limit_inner(component, proposal, names, call, bench)
        settled(component, proposal, call, names, bench, encodes=way.unmasked or _encodes(item, items))
        if not take_output(component, proposal, bench) and not pass_targets(component, proposal, call, bench):
            return None
        limit_length(component, proposal, longest, bench)
        free_length(component, proposal, bench)
        limit_to_even(proposal, bench)
    except WorkerLost:
        raise
    except TROUBLE as problem:
        bench.refusals.append(f"{item.path}: {problem}")
        return None
    return proposal


def _encodes(item: Item, items: Sequence[Item]) -> bool:
    """Whether its name or its author says that it encodes, in code in which nothing is called a language model."""
    if re.search(r"decoder", item.name, re.IGNORECASE):
        return False
    if not re.search(r"encoder", item.name, re.IGNORECASE) and not _ENCODES.search(item.says):
        return False
    return not any(
        named(component_of("TinyTransformerLM"), other.name) for other in items if other.kind in {"class", "function"}
    )
