"""Constants that arguments with a default get in its place, also in the objects and dictionaries that are passed.

What has no default needs a value anyhow. A default that is written down again changes nothing. Whether an entry of a
settings object has a default, no signature says: a trial leaves it out, and finds out whether that can be built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.limits import NUMBERS
from conformkit.conformance.binding.passed import kind_of, kinds_of, shown
from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.binding.sizes import DERIVED

__all__ = ["Settings", "Within", "bare", "inner_constants", "replaced_defaults"]

Within = tuple[str | int, ...]
"""Where an entry is: the argument, then keys and places in it; `arguments` and `then` are those of an object.

A place that ends in `then` is what is done to the object, one that ends in `by_class` that a function makes it.
"""
_BY_CLASS = "by_class"
_NOTHING = Expression("None")
_MAX_ENTRIES = 24
"""More entries than this are left out together only."""


def replaced_defaults(arguments: Arguments, signature: Signature | None) -> Iterator[tuple[str | int, str, Any]]:
    """Yield arguments that get a constant in place of their default: the place or name, the name, the constant.

    Without a signature, all of them.
    """
    by_name = {p["name"]: p for p in signature or ()}
    places = [p["name"] for p in signature or () if p["kind"] == "positional"]
    for place, kind, value in kinds_of(arguments):
        name = place if isinstance(place, str) else places[place] if place < len(places) else f"argument {place}"
        described = by_name.get(name, {"required": False, "default": None})
        constant = kind == "constants" or (value == _NOTHING and name in by_name)
        if constant and not described["required"] and described["default"] != _written(value):
            yield place, name, value


def _written(value: Any) -> str:
    """Return a value as Python writes it, nothing for an object or a number that sizes give."""
    if isinstance(value, Expression):
        try:
            return repr(evaluate(value.text, {}))
        except ExpressionError:
            return ""
    return repr(value) if isinstance(value, (bool, int, float, str)) else ""


# --- in objects and dictionaries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Entries of settings to leave out together, and in words which these are."""

    places: Collection[Within]
    words: str
    instead: bool = False
    """Whether they are left out only where more together could not be: nobody could build or call it so."""


def inner_constants(arguments: Arguments) -> list[Settings]:
    """Return what may be left out of settings that are passed, in the order to try.

    First all that are constants; where that cannot be built, all but one; then each of them alone. Functions that make
    an object in the place of its class are something else.
    """
    places = dict(_of_arguments(arguments, ()))
    found = {place: words for place, words in places.items() if place[-1] != _BY_CLASS}
    outer = [place for place in found if not any(place[:n] in found for n in range(1, len(place)))]
    deepest = [place for place in found if not any(place == other[: len(place)] != other for other in found)]
    tries: list[Collection[Within]] = [outer, deepest]
    if 1 < len(found) <= _MAX_ENTRIES:
        tries += [[other for other in deepest if other != place] for place in deepest]
        tries += [[place] for place in found]
    distinct = {tuple(sorted(one, key=str)): one for one in tries if one}
    left_out = [
        Settings(one, ", ".join(found[place] for place in one), instead=number > 0)
        for number, one in enumerate(distinct.values())
    ]
    made = [place for place in places if place[-1] == _BY_CLASS]
    return [*left_out, *([Settings(made, ", ".join(places[place] for place in made))] if made else [])]


def bare(arguments: Arguments, places: Collection[Within]) -> Arguments:
    """Return arguments without these entries of the settings in them."""
    value: Arguments = arguments
    for place in sorted(places, key=lambda place: [str(part).zfill(3) for part in place], reverse=True):
        value = _without(value, place)  # the last ones first: places before them stay what they are
    return value


def _of_arguments(arguments: Arguments, at: Within) -> Iterator[tuple[Within, str]]:
    """Yield the entries of settings, with words; the arguments themselves are none, only what is in them."""
    for place, value in _listed(arguments):
        yield from _inside(value, (*at, place))


def _listed(arguments: Arguments) -> list[tuple[str | int, Any]]:
    return [*enumerate(arguments.positional), *arguments.named.items()]


def _inside(value: Any, at: Within) -> Iterator[tuple[Within, str]]:
    if hasattr(value, "arguments"):
        for part in ("arguments", "then"):
            inner = getattr(value, part)
            if inner is not None:
                yield from _entries(_listed(inner), (*at, part))
        if value.then is not None:
            yield (*at, "then"), f"what {value.method or 'a call'} of {shown(value)} returns"
        yield (*at, _BY_CLASS), f"an object that {value.path} makes, and not its class"
    elif isinstance(value, Mapping) and not {"$name", "$dtype"} & value.keys():
        yield from _entries(list(value.items()), at)


def _entries(entries: list[tuple[str | int, Any]], at: Within) -> Iterator[tuple[Within, str]]:
    """Yield those that are constants, or a size that has a place already; positional ones from the last on only."""
    kept = {name for name, value in entries if not _is_left_out(name, value, entries)}
    last = max((place for place in kept if isinstance(place, int)), default=-1)
    for name, value in entries:
        if name not in kept and not (isinstance(name, int) and name < last):
            yield (*at, name), f"{name} = {shown(value)}" if isinstance(name, str) else shown(value)
        yield from _inside(value, (*at, name))


def _is_left_out(name: str | int, value: Any, entries: list[tuple[str | int, Any]]) -> bool:
    """Whether nobody who knows only the contract passes it: a constant, a size of heads, one that is passed already."""
    text = value.text if isinstance(value, Expression) else ""
    if kind_of(value, str(name)) == "constants" or text == "None" or text in DERIVED:
        return True
    twice = sum(other == value for _, other in entries) > 1
    return text in NUMBERS and twice and isinstance(name, str) and meaning(name, NUMBERS) is None


def _without(value: Any, place: Within) -> Any:
    """Return arguments, an object or a dictionary without the entry at a place."""
    first, *rest = place
    if hasattr(value, "arguments"):
        if not rest:
            return replace(value, by_class=True) if first == _BY_CLASS else replace(value, then=None, method=None)
        return replace(value, **{str(first): _without(getattr(value, str(first)), tuple(rest))})
    if isinstance(value, Arguments):
        positional, named = list(value.positional), dict(value.named)
        part: Any = positional if isinstance(first, int) else named
        if rest:
            part[first] = _without(part[first], tuple(rest))
        else:
            del part[first]
        return Arguments(tuple(positional), named)
    changed = dict(value)
    if rest:
        changed[first] = _without(changed[first], tuple(rest))
    else:
        del changed[first]
    return changed
