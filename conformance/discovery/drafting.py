"""From definitions to a draft: which one is which component, tried in a worker; what is lacking, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.discovery import choosing, encoder_decoder
from conformkit.conformance.discovery.bench import Bench
from conformkit.conformance.discovery.candidates import UNFINISHED, near_miss
from conformkit.conformance.discovery.draft import Draft, absence
from conformkit.conformance.discovery.generation import add_generation
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.structure import structure
from conformkit.conformance.discovery.tools.finding import found_tools
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.driver.location import Location
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.loading import OWN_WORDS, refuse_empty
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import PARTS, Component, components_of
from conformkit.spec.components import component as component_of
from conformkit.spec.profiles import named_profile

__all__ = ["absent", "definitions", "drafted", "looked_for", "other_parts"]

_HELPER = re.compile(r"norm|drop|[gsr]elu|swish|glu|softmax|linear|loss|token|optim|adam|sched|dataset|loader|cache")
"""Names of classes that are no component of the contract."""
_WHOLE = re.compile(r"gpt|model|transformer|network|decoder|encoder|block|layer|forward|attention|attn|position")
_OTHER_NUMBERS = (
    "alone it gives no variant's numbers, as part of {} it does: it has more in it, such as a norm, or less"
)
_MAY_DIFFER = {
    **dict.fromkeys(("MultiHeadAttention", "FeedForward", "TransformerBlock"), _OTHER_NUMBERS),
    "PatchEmbedding": "it gives other rows than those of patches, such as a class token: judged in the whole",
}
"""Parts that may be something else in code whose whole is right, and what is said of them then."""
_CALLED_OTHERWISE = "it has the contract's name, and other arguments: judged inside {}, which calls it and is right"


def looked_for(profile: str) -> Mapping[str, Component]:
    """Return the components of a profile that are looked for: in lm and paths the model alone."""
    if named_profile(profile).model_alone:
        return {"TinyTransformerLM": component_of("TinyTransformerLM")}
    return components_of(profile)


def absent(found: Draft) -> dict[str, str]:
    """Return the components that nothing in the code is, with the reason; not those that are still to be written."""
    lacking = {name: why for name, why in found.missing.items() if not why.endswith(UNFINISHED)}
    wholes = [p.component for p in found.proposals if p.matched and p.component in PARTS]
    within = {part: whole for whole in wholes for part in PARTS[whole]}
    return {name: absence(name, why, within.get(name, "")) for name, why in lacking.items()}


def other_parts(found: Draft, named: Collection[str] = (), fitting: Collection[str] = ()) -> dict[str, str]:
    """Return the parts that do more or less than the contract's, since a whole made of them is right as it is.

    Where attention has its norm inside, or patches their class token, it alone is not what the contract calls by that
    name, nor is a class that is called otherwise by a model. `named` are judged all the same; `fitting` have the
    contract's name, and may give other shapes than its.
    """
    proposed = {p.component: p.matched for p in found.proposals}
    within = {part: whole for whole, right in proposed.items() if right for part in PARTS.get(whole, ())}
    other = {part for part, right in proposed.items() if not right}
    if "PatchEmbedding" in fitting and "PatchEmbedding" not in proposed:  # its rows have another shape
        other.add("PatchEmbedding")
    otherwise = {part: whole for part, whole in found.inside.items() if part not in {*named, *fitting}}
    return {part: _CALLED_OTHERWISE.format(whole) for part, whole in otherwise.items()} | {
        part: _MAY_DIFFER[part].format(whole) for part, whole in within.items()
        if part in _MAY_DIFFER and part in other and part not in named
    }  # fmt: skip


@np.errstate(all="ignore")  # what an implementation returns may be anything
def drafted(
    implementation: Implementation, location: Location, request: RunRequest, named: Mapping[str, str],
    wanted: Collection[str] | None = None, tell: Callable[[str], None] = lambda _: None,
    tools: Collection[str] | None = None,
) -> Draft:  # fmt: skip
    """Draft a conform.toml for what was imported, without judging anything; `wanted` are the components to look for.

    `tools` are the tools to look for, by default all that are lacking.

    `tell` hears what is being looked for; `named` gives paths of components by name. Raises LoadFailure where a named
    path is not that component.
    """
    refuse_empty(request, location)
    others = not named or _is_own(location)
    items, left_out = _listed(implementation, named, others=others)
    left_out += _two_sided(items) if named_profile(request.profile).one_sided else []
    bench, search = Bench(implementation, location.path), Search(None)
    proposals, ended = _proposals(
        items, bench, search, named, request.profile, others=others, wanted=wanted, tell=tell
    )  # fmt: skip
    if wanted is None:  # a run tells what is declared and does not fit as ever
        _refuse_unfit(proposals, named, bench)
    lacking = _lacking(proposals, search, request.profile) if others else []
    lacking_tools = implementation.lacking_tools(request.profile) if tools is None else tools
    tell("looking for functions and classes besides the model")
    found = found_tools(implementation, items, lacking_tools if others else (), request.profile, location.path)
    lacking = [name for name in lacking if wanted is None or name in wanted]
    why = {name: near_miss(component_of(name), items, bench.taken(), bench.refusals) for name in lacking}
    choices = search.entries()
    further = structure(proposals, choices, bench)
    inside = _called_inside(items, proposals, bench, request.profile)
    return Draft(
        request.impl, implementation.framework, proposals, choices, why, left_out, further, bench.dtypes(),
        whole=search.found("TinyTransformerLM"), tools=found, idle=_idle(items, proposals), inside=inside,
        ended=ended,
    )  # fmt: skip


def _called_inside(
    items: Collection[Item], proposals: Collection[Proposal], bench: Bench, profile: str
) -> dict[str, str]:
    """Return the components of whose name there is a class taken for nothing, each with a right whole that calls it."""
    taken = {str(proposal.table["path"]) for proposal in proposals}
    exports = {one.export: one.name for one in looked_for(profile).values()}
    others = [item.name for item in items if item.kind == "class" and item.path not in taken and item.name in exports]
    found: dict[str, str] = {}
    for whole in proposals if others else ():
        if whole.matched:
            kinds = bench.kinds_inside(whole.component, whole.table)
            found |= {exports[name]: whole.component for name in others if name in kinds}
    return found


def _idle(items: Collection[Item], proposals: Collection[Proposal]) -> list[str]:
    """Return what may be a component that nothing recognized: classes that can be called, functions with its name."""
    used = " ".join(str(proposal.table) for proposal in proposals)
    others = [item for item in items if f"'{item.path}'" not in used and not _HELPER.search(item.name.lower())]
    return [
        item.path for item in others
        if item.call is not None and (item.kind == "class" or _WHOLE.search(item.name.lower()))
    ]  # fmt: skip


def definitions(implementation: Implementation) -> list[Item]:
    """Return everything that its author defines. Raises LoadFailure."""
    return _listed(implementation, {}, others=True)[0]


def _is_own(location: Location) -> bool:
    """Whether it is the user's own code: an installed library is not searched beyond the named components."""
    return location.path is not None and "site-packages" not in location.path.parts


def _listed(implementation: Implementation, named: Mapping[str, str], *, others: bool) -> tuple[list[Item], list[str]]:
    request = {"op": "list", "paths": list(named.values()), "others": others}
    try:
        header = implementation.request(request).header
        known = {item["path"] for item in header["items"]}
        further = dict.fromkeys(path for item in header["items"] for path in _beside(item) if path not in known)
        more = implementation.request({"op": "list", "paths": [*further], "others": False}).header["items"]
    except DriverError as failure:
        why = str(failure)
        if isinstance(failure, ImplementationFailure) and failure.type == OWN_WORDS:
            why = failure.message
        raise LoadFailure(f"its definitions cannot be read: {why}") from None
    names = [each.name for each in fields(Item)]
    found = {item["path"]: Item(**{name: item[name] for name in names}) for item in [*header["items"], *more]}
    return list(found.values()), header["left_out"]


def _beside(item: Mapping[str, Any]) -> list[str]:
    """Return the paths of classes whose objects its constructor takes, including settings."""
    return [*filter(None, [item["config"]]), *(path for paths in item["objects"].values() for path in paths)]


def _two_sided(items: Collection[Item]) -> list[str]:
    """Return a hint at an encoder-decoder, which core does not look for: its model takes a source and a target."""
    for item in items:
        wanted = {meaning(p["name"], ("src", "tgt")) for p in item.call or () if p["required"]}
        if item.kind == "class" and {"src", "tgt"} <= wanted:
            return [f"{item.path} takes a source and a target: for an encoder-decoder, add --profile seq2seq"]
    return []


def _proposals(
    items: list[Item], bench: Bench, search: Search, named: Mapping[str, str], profile: str, *, others: bool,
    wanted: Collection[str] | None, tell: Callable[[str], None],
) -> tuple[list[Proposal], str]:  # fmt: skip
    """Return what is found, and why the search ended early, if it did. Raises LoadFailure if nothing was found."""
    found: list[Proposal] = []
    several = any(component.several for component in looked_for(profile).values())
    choose = encoder_decoder.choose if several else choosing.choose
    for component in looked_for(profile).values():
        if component.name not in named and (not others or (wanted is not None and component.name not in wanted)):
            continue
        tell(f"looking for {component.name}" + (f", {len(found)} found" if found else ""))
        taken = [proposal.table["path"] for proposal in found] + list(named.values())
        try:
            proposal = choose(component, items, bench, search, taken, named.get(component.name, ""))
            found += [proposal] if proposal is not None else []
            if proposal is not None and component.is_language_model:
                add_generation(proposal, items, bench)
        except WorkerLost as lost:
            told = f"trying its components ended its process: {lost.detail}"
            if not found:
                raise LoadFailure(told) from None
            return found, f"{told}; {component.name} and what follows were not looked for further"
    return found, ""


def _refuse_unfit(proposals: Collection[Proposal], named: Mapping[str, str], bench: Bench) -> None:
    """Raise LoadFailure if a path named by the user can't be used as its component."""
    for name in named.keys() - {proposal.component for proposal in proposals}:
        why = [text for text in bench.refusals if text.startswith(f"{named[name]}:")]
        problem = f"{named[name]} could not be constructed and called as {name}"
        raise LoadFailure(problem, advice=(*why[:3], f"see how it is called: conform spec {component_of(name).prefix}"))


def _lacking(proposals: Collection[Proposal], search: Search, profile: str) -> list[str]:
    """Return the required components without a candidate; a table of sinusoids only if the model adds one."""
    variants = [search.found(name) for name in ("TinyTransformerLM", "MultiHeadAttention")]
    has = {proposal.component for proposal in proposals}
    if named_profile(profile).judged_inside:
        has |= {part for name in has for part in PARTS.get(name, ())}
    if any(variant is not None and variant.positions != "sinusoidal" for variant in variants):
        has.add("PositionalEncoding")
    if not named_profile(profile).has_parts:
        return []
    return [c.name for c in components_of(profile).values() if c.required and c.name not in has]
