"""Arguments with a default that a declaration gives a value which no caller of the contract passes.

Code may be right only where such an argument is given: `forward(x, memory=None)`, called with x twice. Each argument
of the contract goes to one of theirs; what has no default needs a value anyhow, so passing one is a renaming. What
else mentions sizes or arrays is a further argument: an excuse.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression, is_built, used_by
from conformkit.conformance.binding.calls import insists
from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.binding.generation import SAMPLES
from conformkit.conformance.binding.masks import NAMES as MASKS
from conformkit.conformance.binding.passed import SWITCHES, kind_of, kinds_of, shown
from conformkit.conformance.binding.settings import bare, inner_constants, replaced_defaults
from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.binding.sizes import DERIVED, derived_names
from conformkit.conformance.binding.tool_config import ToolConfig
from conformkit.spec.components import GENERATE, Component
from conformkit.spec.tools import FUNCTION, ToolContract
from conformkit.spec.variants import Variant

__all__ = ["Further", "Plain", "further", "further_of", "further_of_tool", "without_constants", "without_further"]

_ANSWERS: Mapping[str, frozenset[str]] = {
    "padding": frozenset({"mask"}),
    "src_padding": frozenset({"src_mask"}),
    "memory_padding": frozenset({"memory_mask"}),
    "tgt_mask": frozenset({"tgt_padding", "causality"}),
}
"""Masks that say what others say: the target's is padding and causality together."""
_ELEMENT = re.compile(r"[a-z_]+\[\d+\]")
_MAX_TRIED = 8
"""At most so many constants, and ways to leave out settings, are tried one by one."""
_ONE_INPUT = ("query", "key", "value")
_EITHER = ("True", "False")


@dataclass(frozen=True, slots=True)
class Further:
    """One further argument: the key of conform.toml that passes it, the kind of excuse that it is, and its words.

    Of `constants`, which conform.toml shows by itself, the words are the arguments that have a default.
    """

    key: str
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Arguments without some that no caller of the contract passes, by key, and in words which these are."""

    arguments: Arguments
    words: str
    refused: bool = False
    """Whether it is judged without them if they change its numbers, since a policy does not allow that."""
    instead: bool = False
    """Whether it is tried only where more could not be left out together: nobody could build or call it so."""
    alone: bool = False
    """Whether it is one entry of several that are tried one by one."""


def further(
    arguments: Arguments, signature: Signature | None, contract: Collection[str]
) -> dict[str | int, tuple[str, str]]:
    """Return arguments, by name or place, that get what no caller of the contract passes: the kind, and in words what.

    Without a signature every argument may have a default. Constants and objects are told anyhow, by their own kind.
    """
    given = list(_given(arguments, signature))
    named = {one.name for one in given}
    carried: set[str] = set()
    found: dict[str | int, tuple[str, str]] = {}
    for one in sorted(given, key=lambda one: _rank(one, contract)):
        used = used_by(one.value)
        ours = {part for name in used & {*contract} for part in _ANSWERS.get(name, {name})}
        if ours and not ours <= carried and (element := _ELEMENT.fullmatch(getattr(one.value, "text", ""))):
            ours = {element[0]}  # each element of a pair has a place of its own
        plain = _is_switch(one) and one.default in _EITHER
        optional = bool(used) and not one.required and not is_built(one.value) and not plain
        if optional and ours <= carried and not _is_one_of_three(one, named):
            said = f"{one.name or f'argument {one.place}'} = {shown(one.value)}"
            found[one.place] = _kind(one, used - carried, contract), said
        carried |= ours
    return found


def without_further(arguments: Arguments, signature: Signature | None, found: Collection[str | int]) -> Arguments:
    """Return arguments without these; positional ones behind one of them are passed by name."""
    first = next((place for place in range(len(arguments.positional)) if place in found), len(arguments.positional))
    behind = [one for one in _given(arguments, signature) if isinstance(one.place, int) and one.place > first]
    named = {one.name: one.value for one in behind if one.name and one.place not in found}
    rest = {name: value for name, value in arguments.named.items() if name not in found}
    return replace(arguments, positional=arguments.positional[:first], named=named | rest)


def without_constants(arguments: Arguments, signature: Signature | None) -> list[Arguments]:
    """Return arguments without constants, the fewest first: without all, those that have a default, all but one."""
    fixed = [place for place, kind, _ in kinds_of(arguments) if kind == "constants"]
    instead = [place for place, _, _ in replaced_defaults(arguments, signature)]
    tries: list[list[str | int]] = [sorted({*fixed, *instead}, key=str), instead]
    tries += [[other for other in fixed if other != place] for place in fixed[:_MAX_TRIED]]
    found: list[Arguments] = []
    for places in (*tries, []):
        outer = without_further(arguments, signature, places) if places else arguments
        found += [bare(outer, one.places) for one in inner_constants(outer)[:_MAX_TRIED]] + [outer]
    return [one for n, one in enumerate(found) if one != arguments and one not in found[:n]]


@dataclass(frozen=True, slots=True)
class _Given:
    place: str | int
    name: str
    """Empty where no signature says it."""
    value: Any
    required: bool
    default: str | None = None


def _given(arguments: Arguments, signature: Signature | None) -> Iterator[_Given]:
    required = {p["name"]: bool(p["required"]) for p in signature or ()}
    default = {p["name"]: p["default"] for p in signature or ()}
    places = [p["name"] for p in signature or () if p["kind"] == "positional"]
    for place, value in enumerate(arguments.positional):
        name = places[place] if place < len(places) else ""
        yield _Given(place, name, value, required.get(name, False), default.get(name))
    for name, value in arguments.named.items():
        yield _Given(name, name, value, required.get(name, False), default.get(name))


def _rank(one: _Given, contract: Collection[str]) -> int:
    """Arguments without a default come first, then those with the contract's name for what they get, then its aliases.

    What is left when all arguments of the contract have a place is further.
    """
    text = one.value.text if isinstance(one.value, Expression) else ""
    if one.required:
        return 0
    if text and text == (one.name or text):
        return 1
    return 2 if text in contract and meaning(one.name, [text]) else 3


def _kind(one: _Given, new: Collection[str], contract: Collection[str]) -> str:
    """Return `computed` for what much code takes besides the contract's: sizes of heads, a second dropout, a switch.

    A switch that is neither true nor false by default tells whoever leaves it out from both.
    """
    text = one.value.text if isinstance(one.value, Expression) else ""
    of_heads = text in DERIVED and text in new and "num_heads" in contract
    usual = of_heads or (text == "dropout" and "drop" in one.name)
    return "computed" if usual or _is_switch(one) else "further"


def _is_switch(one: _Given) -> bool:
    """Whether it turns sampling on or off by the temperature, as the kit itself does where nothing is declared."""
    return one.name in SAMPLES and isinstance(one.value, Expression) and one.value.text in SWITCHES


def _is_one_of_three(one: _Given, named: Collection[str]) -> bool:
    """Whether it is a query, a key or a value beside the two others: attention that takes its one input three times."""
    roles = {meaning(name, _ONE_INPUT) for name in named if name}
    text = one.value.text if isinstance(one.value, Expression) else ""
    return text == "x" and meaning(one.name, _ONE_INPUT) is not None and set(_ONE_INPUT) <= roles


# --- of a component ---------------------------------------------------------------------------------------------------


def further_of(
    component: Component, export: Mapping[str, Any], config: Config, free: Mapping[str, Any] | None
) -> tuple[ComponentConfig, tuple[Further, ...], list[tuple[str, Plain]]]:  # fmt: skip
    """Return what is declared about a component, the further arguments in it, and arguments without some of them.

    Those of a kind that is refused are left out: the code is judged as callers of the contract find it. Whether
    constants and what has no default change its numbers shows in a trial only.
    """
    own, found = config.component(component.name), _Found(component.name, config.refused)
    described = export["methods"] or {}
    construct, call, generate, mask = own.construct, own.call, own.generate, own.mask
    if export["kind"] != "function" or own.factory:
        ours = _constructed(component, config.variant_for(component.name))
        construct = found.kept("construct", construct, export["construct"], ours)
    call = found.kept("call", call, export["call"], _called(component, export, own))
    if generate is not None:
        signature = described.get(generate.path) or (free or {}).get("call")
        ours = frozenset({*(a.name for a in GENERATE), "model"})
        generate = replace(generate, call=found.kept("generate.call", generate.call, signature, ours))
    methods = {
        name: replace(
            method,
            call=found.kept(
                f"methods.{name}.call", method.call, described.get(method.path or name), _asked(component, name)
            ),
        )
        for name, method in own.methods.items()
    }
    if mask is not None and mask.required and mask.kinds and not _insists_on_a_mask(export["call"], call):
        found.tell("mask.required", "further", "a mask that hides nothing")
        mask = replace(mask, required="further" not in config.refused)
    changed = replace(own, construct=construct, call=call, generate=generate, methods=methods, mask=mask)
    return changed, tuple(found.told), found.plain


def further_of_tool(
    tool: ToolContract, export: Mapping[str, Any], config: Config
) -> tuple[ToolConfig, tuple[Further, ...]]:  # fmt: skip
    """Return what is declared about a tool, and the further arguments in it, of which refused ones are left out."""
    own, found = config.tool(tool.name), _Found(tool.name, config.refused)
    described = export["methods"] or {}
    construct, call, methods = own.construct, own.call, dict(own.methods)
    if tool.construct is not None or construct is not None:
        signature = export["call"] if own.factory else export["construct"]
        contract = tool.calls[FUNCTION] if tool.construct is None else tool.construct
        construct = found.kept("construct", construct, signature, tool.names(contract))
    if FUNCTION in tool.calls:
        signature = None if own.factory else export["call"]
        call = found.kept("call", call, signature, tool.names(tool.calls[FUNCTION]))
    for name, method in methods.items():
        if name in tool.calls:
            signature, ours = described.get(method.path or name), tool.names(tool.calls[name])
            methods[name] = replace(method, call=found.kept(f"methods.{name}.call", method.call, signature, ours))
    return replace(own, construct=construct, call=call, methods=methods), tuple(found.told)


def _beside(
    arguments: Arguments, signature: Signature | None, contract: Collection[str],
    instead: Collection[tuple[str | int, str, Any]],
) -> Iterator[tuple[set[str | int], str]]:  # fmt: skip
    """Yield places of what no caller of the contract passes, and in words what is passed there.

    Constants in place of a default are one; what has no default is another, each by itself: only a trial shows
    whether a signature says the truth.
    """
    places = {place for place, _, _ in instead}
    if instead:
        yield places, ", ".join(f"{name} = {shown(value)}" for _, name, value in instead)
    for one in _given(arguments, signature):
        passed = isinstance(one.value, Expression) and one.value.text in contract
        if one.required and one.place not in places and not passed:
            yield {one.place}, f"{one.name or f'argument {one.place}'} = {shown(one.value)}"


class _Found:
    """Further arguments of one component or tool."""

    def __init__(self, name: str, refused: Collection[str]) -> None:
        self.name, self.refused = name, refused
        self.told: list[Further] = []
        self.plain: list[tuple[str, Plain]] = []

    def kept(
        self, key: str, arguments: Arguments | None, signature: Signature | None, contract: Collection[str]
    ) -> Arguments | None:
        """Note what is further in declared arguments, and return them without what is refused."""
        if arguments is None:
            return None
        instead = list(replaced_defaults(arguments, signature))
        if instead:
            names = ", ".join(name for _, name, _ in instead)
            self.told.append(Further(f"components.{self.name}.{key}", "constants", names))
        found = further(arguments, signature, contract)
        found |= {
            one.place: ("factors", f"{one.name} = {shown(one.value)}") for one in _given(arguments, signature)
            if isinstance(one.place, int) and kind_of(one.value) != kind_of(one.value, one.name) == "factors"
        }  # fmt: skip
        for kind in dict.fromkeys(kind for kind, _ in found.values()):
            self.tell(key, kind, ", ".join(words for own, words in found.values() if own == kind))
        left_out = {place for place, (kind, _) in found.items() if kind in self.refused}
        for places, words in _beside(arguments, signature, contract, instead):
            plain = without_further(arguments, signature, left_out | places)
            self.plain.append((key, Plain(plain, words, refused="defaults" in self.refused)))
        kept = without_further(arguments, signature, left_out) if left_out else arguments
        for one in inner_constants(kept):
            plain, alone = bare(kept, one.places), one.instead and len(one.places) == 1
            refused = "defaults" in self.refused
            self.plain.append((key, Plain(plain, one.words, refused=refused, instead=one.instead, alone=alone)))
        return kept

    def tell(self, key: str, kind: str, said: str) -> None:
        """Note a further argument, in words."""
        method = f"{key.split('.')[-2]} of " if key.endswith(".call") else ""
        how = f"{method}{self.name} is {'constructed' if key == 'construct' else 'called'} with {said}"
        self.told.append(Further(f"components.{self.name}.{key}", kind, f"{how}, {_WHY[kind]}"))


def _insists_on_a_mask(signature: Signature | None, call: Arguments | None) -> bool:
    """Whether the argument that gets the mask has no default."""
    if call is None:
        own = (p["name"] for p in signature or () if meaning(p["name"], ["mask"]))
        call = Arguments((), {name: Expression("mask") for name in list(own)[:1]})
    return insists(signature or (), call, "mask")


_WHY = {
    "further": "which no caller of the contract passes",
    "computed": "besides what the contract passes",
    "factors": "which is not what the contract passes there",
}


def _constructed(component: Component, variant: Variant) -> frozenset[str]:
    """Return what the contract's constructor gets, and sizes of heads that the variant chooses."""
    known = derived_names(variant)
    chosen = {n for n in known if variant.has_latent or getattr(variant, n) != getattr(component.base, n)}
    return frozenset({*(a.name for a in component.arguments), *chosen})


def _called(component: Component, export: Mapping[str, Any], own: ComponentConfig) -> frozenset[str]:
    """Return what a call of the contract gets, and what turns its causality or masks on."""
    if component.several:
        return frozenset({*component.inputs, *MASKS})
    switched = "causal" in {a.name for a in component.arguments}
    built = own.construct.names() if own.construct is not None else _meanings(export["construct"])
    by_call = switched and "causal" not in built
    return frozenset({*component.inputs, *({"mask"} if switched else ()), *({"causal"} if by_call else ())})


def _meanings(signature: Signature | None) -> frozenset[str | None]:
    return frozenset(meaning(p["name"], ["causal"]) for p in signature or ())


def _asked(component: Component, method: str) -> frozenset[str]:
    """Return what the contract gives one of its methods."""
    known = [one for one in component.methods if one.name == method]
    return frozenset({*MASKS, "model", *(n for m in known for n in (*m.inputs, *(o.name for o in m.options)))})
