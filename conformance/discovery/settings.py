"""The contents of a settings argument for which no class or dictionary was found: by trying what the code asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from conformkit.conformance.discovery.bench import TROUBLE, Bench, missing_setting
from conformkit.conformance.discovery.construction import Construction
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import constant, meant, sizes_of
from conformkit.conformance.discovery.settings_objects import settings_of
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.spec.components import Component

__all__ = ["by_trial"]

_MAX_ADDED_SETTINGS = 24
"""How many settings are added before the search is given up."""


def by_trial(
    component: Component, item: Item, items: Sequence[Item], way: Construction, call: Any, bench: Bench
) -> dict[str, Any] | None:  # fmt: skip
    """Return the arguments of the constructor with settings that work; None if none do.

    Start empty, and add what the code asks for. Unknown settings are false, or None if the code still fails. A function
    of the author's that makes settings, with others changed by name, gives the rest: `config(**changes)`.
    """
    refused: dict[str, Any] | None = None
    for plain, unknown in product((True, False), (False, "None")):
        inner, missed, works = _asked_for(component, item, way, call, bench, plain=plain, unknown=unknown)
        construct = _with(way, inner, plain=plain)
        if works and "d_model" in inner.values():
            return next(_made_by_author(component, item, items, way, call, bench, inner), construct)
        refused = refused or (construct if not missed and "d_model" in inner.values() else None)
    return refused


def _asked_for(
    component: Component, item: Item, way: Construction, call: Any, bench: Bench, *, plain: bool, unknown: Any
) -> tuple[dict[str, Any], str, bool]:  # fmt: skip
    """Return the settings that the code asks for one by one, the one that it missed last, and whether it works."""
    inner: dict[str, Any] = {}
    name, works = "", False
    for _ in range(_MAX_ADDED_SETTINGS):
        table = {"path": item.path, "construct": _with(way, inner, plain=plain)}
        name, works = _missed(component, table, call, bench)
        if not name or name in inner:
            break
        value = meant(name, sizes_of(component))
        value = constant(name, component) if value is None else value
        inner[name] = unknown if value is None else value
    return inner, name, works


def _with(way: Construction, inner: Mapping[str, Any], *, plain: bool) -> dict[str, Any]:
    """Return the arguments with these settings, in a dictionary or as attributes."""
    given = dict(inner) if plain else {"object": "types:SimpleNamespace", "arguments": dict(inner)}
    return {way.settings: given, **way.construct}


def _made_by_author(
    component: Component, item: Item, items: Sequence[Item], way: Construction, call: Any, bench: Bench,
    inner: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield the arguments with settings that a function of the author's makes, only sizes being passed to it."""
    sizes = {name: meant(name, sizes_of(component)) for name in inner}
    sizes = {name: ours for name, ours in sizes.items() if ours}
    for source in settings_of(item, items):
        if any(p["kind"] == "var_keyword" for p in source.call or source.construct or ()):
            construct = {way.settings: {"object": source.path, "arguments": sizes}, **way.construct}
            if _missed(component, {"path": item.path, "construct": construct}, call, bench)[1]:
                yield construct


def _missed(component: Component, table: Mapping[str, Any], call: Any, bench: Bench) -> tuple[str, bool]:
    """Return the setting that the code misses, or nothing, and whether it can be built and called."""
    try:
        bench.tried(component, {**table, **({"call": call} if call is not None else {})})
    except WorkerLost:
        raise
    except TROUBLE as problem:
        return missing_setting(problem), False
    return "", True
