"""Ways to construct a candidate: its arguments, or those of its settings object, in the contract's names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations, product
from types import MappingProxyType
from typing import Any

from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import (
    LONGEST,
    WINDOW,
    as_the_other_side,
    constant,
    equal_sizes,
    is_head_width,
    is_mask,
    is_settings,
    is_window,
    meant,
    passed,
    sizes_of,
)
from conformkit.conformance.discovery.objects import alternatives
from conformkit.conformance.discovery.passed_weights import Weighted, pairs, takes_weights, weighted
from conformkit.conformance.discovery.settings_objects import TOLD_SIZES, further, leaves, settings_object, settings_of
from conformkit.spec.components import Component

__all__ = ["NO_PARTS", "Construction", "Parts", "names_in", "numbers", "ways"]

Parts = Mapping[str, Mapping[str, Any]]
NO_PARTS: Parts = MappingProxyType({})
_CALLED = {
    "MultiHeadAttention": r"(self_?|multi_?head_?|masked_?)*(attn|attention)|mha|sa",
    "FeedForward": r"feed_?forward|ffn?|mlp|ffwd|position_?wise_?feed_?forward|pos_?ffn",
}
"""Names of arguments that take a component."""
MASK_FORMS: Sequence[Mapping[str, Any]] = (
    {"kinds": ["bool"]}, {"kinds": ["float"]}, {"kinds": ["bool"], "true": "hide"},
)  # fmt: skip
_LAZY = "no argument sets d_model: its width is taken for that of its first input"
_MAX_WAYS = 8
_LIKELY = 2
"""How many ways are tried with each form of a mask."""
_SOURCES = 3


@dataclass(frozen=True, slots=True)
class Construction:
    """Arguments of the constructor as written in conform.toml, and which of them were guessed.

    `settings` names an argument for which no object was found: its contents are found by trying.
    """

    construct: dict[str, Any]
    doubts: tuple[str, ...] = ()
    settings: str = ""
    fixed: Mapping[str, int | str | dict[str, int]] = field(default_factory=dict)
    """Sizes that no argument sets: numbers of its module, or expressions over other sizes."""
    globals: Mapping[str, Any] = field(default_factory=dict)
    """Numbers at the top of its module that are settings, by their names."""
    mask: Mapping[str, Any] = field(default_factory=dict)
    """The form of a mask that the constructor gets."""
    unmasked: bool = False
    """Whether it would get a mask, and does without one."""
    weighted: Weighted | None = None
    """Of a function: who makes the weights that it gets as arguments, and how it is called."""

    def given(self) -> frozenset[str]:
        """Return the contract's names that it passes, sets or fixes."""
        return names_in(self.construct) | names_in(self.globals) | self.fixed.keys()


def ways(component: Component, item: Item, items: Sequence[Item], parts: Parts = NO_PARTS) -> list[Construction]:
    """Return ways to construct it, the most plausible first; none where it can't be this component.

    `parts` are the tables of components found so far, for constructors that take them. One that takes a mask gets the
    causal one, in each form; what may do without comes last. A mask that is true or false is a switch.
    """
    if takes_weights(component, item):
        return [Construction({}, (found.doubt,), weighted=found) for found in weighted(component, item, items)]
    if item.kind == "function" and not component.several:
        plain = _ways(component, item, items, parts)
        both = [replace(way, weighted=each) for way in plain[:1] for each in pairs(component, way.construct)]
        return [*plain, *both]
    held = _held_mask(component, item)
    if held is None:
        return _ways(component, item, items, parts)
    without = [p for p in item.construct or () if p is not held]
    plain = _ways(component, replace(item, construct=without), items, parts)
    likely = plain[:_LIKELY]
    switched = [replace(way, construct={**way.construct, held["name"]: "causal"}) for way in plain]
    if held["default"] in {"True", "False"}:
        return switched
    with_mask = [
        replace(way, construct={**way.construct, held["name"]: "mask"}, mask=form)
        for way, form in product(likely, MASK_FORMS)
    ]
    return [*with_mask, *(switched if held["required"] else [replace(way, unmasked=True) for way in plain])]


def _held_mask(component: Component, item: Item) -> Mapping[str, Any] | None:
    """Return the argument of its constructor that takes a mask for later positions, or says whether there is one."""
    if not any(argument.name == "causal" for argument in component.arguments) or item.kind != "class":
        return None
    if component.several or any(meant(p["name"], ("causal",)) for p in item.construct or ()):
        return None
    masks = (p for p in item.construct or () if is_mask(p["name"]) and "bias" not in p["name"])  # vectors of layers
    return next((p for p in masks if p["required"] or p["default"] in {"None", "True", "False"}), None)


def _ways(component: Component, item: Item, items: Sequence[Item], parts: Parts) -> list[Construction]:
    if not component.arguments:
        return [Construction({})]
    signature = item.call if item.kind == "function" else item.construct
    usable = [p for p in signature or () if p["kind"] in {"positional", "keyword"}]
    settings = next((p for p in usable if _holds_settings(p, item)), None)
    if settings is None:
        fixed, top = numbers(item, items, sizes_of(component)), _at_top(component, item, items)
        plain = islice(_held(component, item, items, usable, fixed, parts), _MAX_WAYS)
        return [each for way in plain for each in (*_with_globals(way, top, fixed), way)]
    rest = [p for p in usable if p is not settings]
    found = [way for source in settings_of(item, items)[:_SOURCES] for way in _by(component, settings, source, rest)]
    own, doubts = _others(component, rest)
    return found[:_MAX_WAYS] or ([Construction(own, doubts, settings["name"])] if own is not None else [])


def _holds_settings(parameter: Mapping[str, Any], item: Item) -> bool:
    optional = str(parameter["default"]).startswith(("None", "{"))  # its own settings, or a dictionary of them
    said = parameter["required"] or optional or item.config is not None
    return is_settings(parameter["name"]) and said


def numbers(item: Item, items: Sequence[Item], wanted: Collection[str]) -> dict[str, int]:
    """Return the sizes that are numbers in the module where it is defined, by the contract's names."""
    found: dict[str, int] = {}
    for parameter in _numbers_at_top(item, items):
        ours = meant(parameter["name"].rpartition(".")[2], wanted)
        if ours in wanted and ours not in {"dropout", "causal"}:
            found.setdefault(str(ours), int(parameter["default"]))
    return found


def _numbers_at_top(item: Item, items: Sequence[Item]) -> list[Mapping[str, Any]]:
    """Return the numbers of its module; of those that something holds, a vocabulary for one, only what is settings."""
    own = f"{item.path.partition(':')[0]}:"
    module = next((other for other in items if other.path == own and other.kind == "numbers"), None)
    held: dict[str, list[Mapping[str, Any]]] = {}
    for parameter in (module.construct or ()) if module is not None else ():
        held.setdefault(parameter["name"].rpartition(".")[0], []).append(parameter)
    return [parameter for holder, of in held.items() if not holder or _are_settings(of) for parameter in of]


def _are_settings(parameters: Sequence[Mapping[str, Any]]) -> bool:
    """Whether most of the names that something holds are those of sizes; those of one character are its keys."""
    names = [parameter["name"].rpartition(".")[2] for parameter in parameters]
    return 2 * sum(len(name) > 1 and bool(meant(name, TOLD_SIZES)) for name in names) > len(names)


def _at_top(component: Component, item: Item, items: Sequence[Item]) -> dict[str, Any]:
    """Return the globals of its module that are settings, with what they are in the contract's names."""
    found: dict[str, Any] = {}
    for parameter in _numbers_at_top(item, items):
        name = parameter["name"].rpartition(".")[2]
        ours = meant(name, sizes_of(component))
        if is_window(name) and component.is_causal:
            found[parameter["name"]] = WINDOW
        elif ours and ours != "causal":
            found[parameter["name"]] = ours
        elif meant(name, ("block_size", "max_len", "dropout")):
            found[parameter["name"]] = 0.0 if meant(name, ("dropout",)) else LONGEST
    return found


def _with_globals(way: Construction, top: dict[str, Any], fixed: Mapping[str, int]) -> Iterator[Construction]:
    """Yield the ways in which sizes that are numbers of the code are set there, if there are any."""
    free = {name: value for name, value in way.fixed.items() if fixed.get(name) != value}
    if len(free) < len(way.fixed) or "dropout" in set(top.values()) - names_in(way.construct):
        yield from (replace(way, fixed=free, globals=each) for each in _or_lengths(top))


def _parts(parameters: Signature, parts: Parts) -> dict[str, Any]:
    """Return the components that a constructor takes, by argument name, as the file builds them."""
    found: dict[str, Any] = {}
    for parameter in (p for p in parameters if p["required"]):
        name = next((part for part, words in _CALLED.items() if re.fullmatch(words, parameter["name"].lower())), "")
        table = parts.get(name)
        if table is not None and name not in found.values():
            found[parameter["name"]] = {"object": table["path"], "arguments": table.get("construct", {})}
    return found


def _held(
    component: Component, item: Item, items: Sequence[Item], parameters: Signature, fixed: Mapping[str, int],
    parts: Parts,
) -> Iterator[Construction]:  # fmt: skip
    """Yield ways with the objects for its arguments: components found so far, then other classes of the package."""
    known, _, unknown = passed([p for p in parameters if p["name"] not in item.objects], component)
    held = _parts([p for p in parameters if p["name"] not in known], parts)
    open_ = [name for name in unknown if name not in held]
    for objects in alternatives(component, item, items, open_):
        yield from _plain(component, parameters, fixed, held | objects)
        if objects.keys() - item.objects.keys():
            yield from _plain(component, parameters, fixed, held)


def _plain(
    component: Component, parameters: Signature, numbers_there: Mapping[str, int], held: Mapping[str, Any]
) -> Iterator[Construction]:
    """Yield ways in which every size is a separate argument; arguments with unclear names are tried in every order."""
    known, missing, unknown = passed([p for p in parameters if p["name"] not in held], component)
    known |= held
    missing = [name for name in missing if name not in names_in(held)]
    open_ = [name for name in unknown if constant(name, component) is None]
    made_up = {name: constant(name, component) for name in unknown if name not in open_}
    made_up |= _windows(component, parameters, known)
    fill = len(open_)
    if fill > min(len(missing), 4):
        return
    for order, others in product(permutations(missing, fill), _or_lengths(made_up)):
        left = [name for name in missing if name not in order]
        fixed: dict[str, int | str] = {name: numbers_there[name] for name in left if name in numbers_there}
        fixed = {**equal_sizes(known, left), **fixed}
        lacking = {"d_model", "vocab_size"} & (set(missing) - set(order) - set(fixed))
        if lacking and (lacking != {"d_model"} or component.inputs[:1] != ("x",) or not (known or order)):
            continue
        chosen = known | others | _head_widths(parameters, known) | dict(zip(open_, order, strict=True))
        named = {p["name"]: chosen[p["name"]] for p in parameters if p["name"] in chosen}
        tried = [f"{theirs} is taken for {ours}, by trying" for theirs, ours in zip(open_, order, strict=True)]
        doubts = (*tried, *_guesses(others), *([_LAZY] if lacking else ()))
        yield Construction(named, doubts, fixed=fixed)
        if "d_model" in numbers_there and "d_model" not in fixed:
            yield Construction(named, doubts, fixed=fixed | {"d_model": numbers_there["d_model"]})


def _head_widths(parameters: Signature, known: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments for the width of a head that have a number as default: `dim_head = 64`."""
    if "num_heads" not in known.values():
        return {}
    widths = [p for p in parameters if is_head_width(p["name"]) and str(p["default"]).isdigit()]
    return {p["name"]: "d_model // num_heads" for p in widths}


def _windows(component: Component, parameters: Signature, known: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of keys that a query sees, where they have a number as default: `window = 128`."""
    numbered = [p["name"] for p in parameters if component.is_causal and str(p["default"]).isdigit()]
    return {name: WINDOW for name in numbered if is_window(name) and name not in known}


def _or_lengths(made_up: dict[str, Any]) -> list[dict[str, Any]]:
    """Return arguments, and the same with windows as the longest input, which some call so."""
    windows = [name for name in made_up if is_window(name)]
    return [made_up, {**made_up, **dict.fromkeys(windows, LONGEST)}] if windows else [made_up]


def _by(component: Component, settings: Mapping[str, Any], source: Item, rest: Signature) -> Iterator[Construction]:
    """Yield the way that makes a settings object of this class, function or dictionary."""
    fields = [p for p in leaves(source.construct or source.call) if p["kind"] in {"positional", "keyword"}]
    yield from _with_fields(component, settings, source, fields, rest)
    one_sided = [p for p in fields if p["default"] != "None" or p["name"] not in as_the_other_side(fields, component)]
    if len(one_sided) < len(fields):
        yield from _with_fields(component, settings, source, one_sided, rest)


def _with_fields(
    component: Component, settings: Mapping[str, Any], source: Item, fields: Signature, rest: Signature
) -> Iterator[Construction]:
    inner, missing, unknown = passed(fields, component)
    if "d_model" in missing or "vocab_size" in missing:
        return
    guessed = {name: constant(name, component) for name in unknown}
    made_up = guessed | further(component, fields, inner)
    others, doubts = _others(component, rest)
    if others is None or None in made_up.values():
        return
    for made in _or_lengths(made_up):
        value = settings_object(source, fields, inner | made)
        fixed = equal_sizes(inner, missing)
        told = {name: made[name] for name in guessed}
        yield Construction({settings["name"]: value, **others}, (*doubts, *_guesses(told)), fixed=fixed)


def _others(component: Component, rest: Signature) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the arguments besides a settings object; None if one has no value."""
    known, _, unknown = passed(rest, component)
    made_up = {name: constant(name, component) for name in unknown}
    return (None if None in made_up.values() else known | made_up), tuple(_guesses(made_up))


def _guesses(made_up: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {value!r} is made up: the contract has no such argument" for name, value in made_up.items()]


def names_in(construct: Mapping[str, Any]) -> frozenset[str]:
    """Return the contract's names that arguments pass on, those of objects included."""
    found: set[str] = set()
    for value in construct.values():
        found |= _names_of(value)
    return frozenset(found)


def _names_of(value: Any) -> frozenset[str]:
    if isinstance(value, Mapping):
        return names_in(value)
    if isinstance(value, list):
        return frozenset(str(inner) for inner in value)
    return frozenset({str(value).removeprefix("not ")})
