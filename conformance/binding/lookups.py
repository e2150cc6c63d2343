"""What to look up in an implementation, and what was found there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.signatures import Signature
from conformkit.spec.components import COMPONENTS, Component

__all__ = [
    "further_targets",
    "serves",
    "standing",
    "standing_targets",
    "standing_tools",
    "stub_of",
    "targets",
    "with_inside",
]


def targets(config: Config, components: Collection[Component] = tuple(COMPONENTS.values())) -> dict[str, str | None]:
    """Return what to look up: by component, the declared path or None for the contract's name."""
    found: dict[str, str | None] = {}
    for one in components:
        path = config.component(one.name).path
        found[one.export] = f"{config.module}:{path}" if path and ":" not in path and config.module else path
    for model in (one for one in components if one.is_language_model):
        generate = config.component(model.name).generate
        found["generate"] = generate.path if generate is not None and ":" in generate.path else None
    return found


def further_targets(config: Config, components: Collection[Component]) -> dict[str, None]:
    """Return the alternative names to look up: those of components without a declared path."""
    undeclared = [one for one in components if config.component(one.name).path is None]
    return {name: None for one in undeclared for name in one.further}


_STANDING, _OUTSIDE = "standing ", "outside "
"""Before the contract's name of what is looked up besides a declared path, and outside a declared module."""


def standing_targets(config: Config, components: Collection[Component]) -> dict[str, str]:
    """Return what may stand under the contract's names of components that are declared to be elsewhere.

    Another module than the implementation itself is elsewhere for all of them.
    """
    return _standing(config, {one.export: config.component(one.name).path for one in components})


def standing_tools(config: Config, tools: Collection[str]) -> dict[str, str]:
    """Return the same for tools."""
    return _standing(config, {name: config.tool(name).path for name in tools})


def _standing(config: Config, paths: Mapping[str, str | None]) -> dict[str, str]:
    found = {}
    for export, path in paths.items():
        if path not in {None, export}:
            found[_STANDING + export] = f"{config.module}:{export}" if config.module else export
        if config.module:
            found[_OUTSIDE + export] = export
    return found


def standing(exports: Mapping[str, Any], export: str) -> str:
    """Return where another object than the declared one stands under the contract's name; empty if none does."""
    own = exports[export]
    others = [exports.get(before + export) for before in (_STANDING, _OUTSIDE)]
    found = (str(o["source"]) for o in others if o and o["found"] and own["found"] and o["source"] != own["source"])
    return next(found, "")


def serves(component: Component, export: Mapping[str, Any]) -> bool:
    """Whether an export under an alternative name may be this component.

    Attention must take a key and a value; embeddings constructed with a length or a dropout rate are more than a
    table lookup.
    """
    if component.name == "TokenEmbedding":
        more = [meaning(p["name"], ("max_len", "dropout")) for p in export.get("construct") or ()]
        return bool(export["found"]) and not any(more)
    if component.name != "CrossAttention":
        return bool(export["found"])
    names = [meaning(p["name"], ("query", "key", "value")) for p in export.get("call") or ()]
    return bool(export["found"]) and {"query", "key", "value"} <= set(names)


def with_inside(export: Mapping[str, Any], signature: Signature | None, name: str = "") -> Signature | None:
    """Add the names that a function (the call: empty) looks up in its `**kwargs` to what its signature tells."""
    names = (export.get("inside") or {}).get(name, ())
    if signature is None or not names:
        return signature
    own = {parameter["name"] for parameter in signature}
    more = {"kind": "keyword", "required": False, "default": "None"}
    return [*signature, *({"name": one, **more} for one in names if one not in own)]


def stub_of(export: Mapping[str, Any], *names: str) -> str:
    """Return the line that always raises NotImplementedError, if one of these methods is such a stub."""
    found: Mapping[str, str] = export.get("stubs") or {}
    return next((found[name] for name in names if name in found), "")
