"""Objects and dictionaries of settings: which one code takes, and how it is made with the contract's sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformkit.conformance.binding.signatures import Signature
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import (
    LONGEST,
    MOST_ROWS,
    WINDOW,
    constant,
    is_head_width,
    is_window,
    meant,
    passed,
    sizes_of,
)
from conformkit.spec.components import Component

__all__ = ["TOLD_SIZES", "further", "leaves", "made_of", "settings_object", "settings_of"]

TOLD_SIZES = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size", "max_len")
_SIZES_OF_SETTINGS = 3
"""How many sizes a dictionary names that holds settings, whatever it is called."""
_FAMOUS = {"eos_token_id": "None", "bos_token_id": 0, "pad_token_id": "None"}
"""Settings of large libraries that small vocabularies need."""


def settings_of(item: Item, items: Sequence[Item]) -> list[Item]:
    """Return candidates for its settings object: by annotation, then by name, the nearest first."""
    named = [other for other in items if other.path == item.config]
    like = [o for o in items if _is_called_settings(o) and (o.call is None or o.kind != "class")]
    own = item.path.partition(":")[0]
    found = [*named, *sorted(like, key=lambda o: o.path.partition(":")[0] != own)]
    return [_with_defaults(o, items) for o in {o.path: o for o in found}.values()]


def _with_defaults(source: Item, items: Sequence[Item]) -> Item:
    """Return a function that takes any keyword with the names in its module's dictionary of settings: its defaults."""
    takes = source.call or ()
    if source.kind != "function" or [p["kind"] for p in takes] != ["var_keyword"]:
        return source
    own = f"{source.path.partition(':')[0]}:"
    held = next((o for o in items if o.kind == "mapping" and o.path.startswith(own) and _is_called_settings(o)), None)
    return replace(source, call=held.construct) if held is not None else source


def _is_called_settings(item: Item) -> bool:
    if (
        item.kind == "mapping"
        and sum(bool(meant(p["name"], TOLD_SIZES)) for p in leaves(item.construct)) >= _SIZES_OF_SETTINGS
    ):
        return True
    name = item.name.lower()
    return any(word in name for word in ("config", "cfg", "args", "param", "setting", "option"))


def made_of(component: Component, item: Item, items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the nearest settings with the sizes of a component, as the file makes them; None if one has no value."""
    for source in settings_of(item, items):
        fields = [p for p in leaves(source.construct or source.call) if p["kind"] in {"positional", "keyword"}]
        inner, missing, unknown = passed(fields, component)
        values = inner | {name: constant(name, component) for name in unknown} | further(component, fields, inner)
        if not {"d_model", "vocab_size"} & set(missing) and None not in values.values():
            return settings_object(source, fields, values)
    return None


def settings_object(source: Item, fields: Signature, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with these values, as the file makes them: an object, a dictionary, or dictionaries in one."""
    given = {p["name"]: values[p["name"]] for p in fields if p["name"] in values}
    if source.path.startswith("transformers"):
        given["attn_implementation"] = "'eager'"
    if source.kind == "mapping":
        given |= {p["name"]: _literal(p["default"]) for p in fields if p["name"] not in given and p["default"] != "…"}
    if any(p.get("inner") for p in source.construct or ()):
        given = _nested(source.construct or (), given)
    return given if source.kind == "mapping" else {"object": source.path, "arguments": given}


def leaves(fields: Signature | None) -> list[Mapping[str, Any]]:
    """Return the settings in dictionaries that lie in one another, each name once."""
    found: dict[str, Mapping[str, Any]] = {}
    for field_ in fields or ():
        for leaf in leaves(field_["inner"]) if field_.get("inner") else [field_]:
            found.setdefault(leaf["name"], leaf)
    return list(found.values())


def _nested(fields: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in the dictionaries in which they lie."""
    values = {p["name"]: _inside(p, given) if p.get("inner") else given.get(p["name"]) for p in fields}
    return {name: value for name, value in values.items() if value is not None}


def _inside(parameter: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dictionary in a dictionary, or an object of settings in another one."""
    inner = _nested(parameter["inner"], given)
    return {"object": parameter["made_of"], "arguments": inner} if "made_of" in parameter else inner


def further(component: Component, fields: Signature, inner: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must not keep its default: the longest input, and heads that must divide a width."""
    found: dict[str, Any] = {}
    for name, default in ((p["name"], p["default"]) for p in fields if p["name"] not in inner):
        other = meant(name, ("num_heads", "kv_heads", "block_size"))
        if other == "block_size" and "num_heads" in sizes_of(component) and "block_size" not in sizes_of(component):
            found[name] = LONGEST
        elif other in {"num_heads", "kv_heads"} and "num_heads" not in sizes_of(component):
            found[name] = 1
        elif is_head_width(name) and "num_heads" in sizes_of(component) and str(default).isdigit():
            found[name] = constant(name, component)
        elif is_window(name) and component.is_causal and str(default).isdigit():
            found[name] = WINDOW
        elif name.lower().endswith("eps"):
            found[name] = 1e-5
        elif name.lower() == "multiple_of":
            found[name] = 1
        elif name.lower() in MOST_ROWS and str(default).isdigit():
            found[name] = LONGEST
        elif name in _FAMOUS and {"vocab_size", "tgt_vocab_size"} & set(sizes_of(component)):
            found[name] = _FAMOUS[name]
    return found


def _literal(default: str | None) -> Any:
    """Return a plain default as written in the file."""
    known = {"True": True, "False": False, "None": "None", None: "None"}
    if default in known:
        return known[default]
    if str(default).startswith(("'", '"')):
        return default
    number = float(default or 0)
    return int(number) if number.is_integer() and "." not in str(default) and "e" not in str(default) else number
