"""Constructor arguments that are objects of the package: layers that are passed to a wrapper.

The class of such an argument comes from its annotation, or is guessed by its name; its own arguments are sizes, or
again such objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import constant, passed
from conformkit.spec.components import Component

__all__ = ["alternatives"]

_DEEP = 3
_MAX_CHOICES = 6
_LATER = re.compile(r"encoder|prefix|cross", re.IGNORECASE)
_SOONER = re.compile(r"decoder|causal|gpt", re.IGNORECASE)
_SHORT = {"attn": "attention", "mha": "attention", "emb": "embed", "embedding": "embed", "embeddings": "embed",
          "ff": "feedforward", "ffn": "feedforward", "enc": "encoder", "dec": "decoder"}  # fmt: skip
_SHORTEST = 4
"""Minimum number of letters of an argument's name that identify a class."""


def alternatives(
    component: Component, item: Item, items: Sequence[Item], open_: Sequence[str], deep: int = _DEEP
) -> Iterator[dict[str, Any]]:
    """Yield objects for those arguments of a constructor that take objects, by name, as the file builds them.

    `open_` are the required arguments whose names say nothing about sizes.
    """
    found = {name: list(_made(component, name, item, items, deep)) for name in _names(item, open_)}
    found = {name: made for name, made in found.items() if made}
    for chosen in islice(product(*found.values()), _MAX_CHOICES):
        yield dict(zip(found, chosen, strict=True))


def _names(item: Item, open_: Sequence[str]) -> list[str]:
    required = [p["name"] for p in item.construct or () if p["required"]]
    return [name for name in required if name in item.objects or name in open_]


def _made(component: Component, name: str, item: Item, items: Sequence[Item], deep: int) -> Iterator[Mapping[str, Any]]:
    for other in _classes(name, item, items):
        yield from _objects(component, other, items, deep - 1)


def _classes(name: str, item: Item, items: Sequence[Item]) -> list[Item]:
    """Return the classes that fit an argument; classes that read later positions come last."""
    kinds = [other for other in items if other.kind == "class" and other.path != item.path and other.call is not None]
    said = item.objects.get(name, ())
    found = [k for k in kinds if k.path in said] if said else [k for k in kinds if _is_called(name, k.name)]
    whole = name.lower().replace("_", "")
    reading = {k.path: bool(_LATER.search(k.name)) - bool(_SOONER.search(k.name)) for k in found}
    return sorted(found, key=lambda k: (k.name.lower() != whole, reading[k.path]))


def _is_called(argument: str, kind: str) -> bool:
    """Whether a class has the name of an argument, or of its last word: `block`, `src_embed`, `attn_layers`."""
    words = [_SHORT.get(word, word) for word in argument.lower().split("_")]
    whole, last = "".join(words), words[-1]
    name = kind.lower().replace("_", "")
    return len(last) >= _SHORTEST and (name == whole or name.endswith(last) or name.startswith(last))


def _objects(component: Component, kind: Item, items: Sequence[Item], deep: int) -> Iterator[Mapping[str, Any]]:
    """Yield ways to build one object of a class; none where an argument of it has no value."""
    fields = [p for p in kind.construct or () if p["kind"] in {"positional", "keyword"}]
    known, _, unknown = passed([p for p in fields if p["name"] not in kind.objects], component)
    guessed = {name: value for name in unknown if (value := constant(name, component)) is not None}
    for held in alternatives(component, kind, items, unknown, deep) if deep else ({},):
        given = known | guessed | held
        if not {*unknown, *kind.objects} - given.keys():
            arguments = {p["name"]: given[p["name"]] for p in fields if p["name"] in given}
            yield {"object": kind.path, "arguments": arguments}
