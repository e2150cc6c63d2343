"""Functions in a component's place: whether one makes the component, for which conform.toml says `factory = true`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.spec.components import Component

__all__ = ["CONFIGS", "makes_it", "to_declare"]

CONFIGS = ("config", "cfg", "conf", "args", "params", "hparams", "options", "settings")
"""Names of arguments that hold all sizes of a component."""


def makes_it(component: Component, export: Mapping[str, Any]) -> bool:
    """Whether a function takes sizes, or nothing at all, where the contract's call has arrays."""
    if export["kind"] != "function" or not component.arguments:
        return False
    names = [p["name"] for p in export["call"] or () if p["kind"] in {"positional", "keyword"}]
    if not names:
        return export["call"] is not None and not export["call"]
    sizes = [argument.name for argument in component.arguments]
    return meaning(names[0], component.inputs) is None and (names[0] in CONFIGS or meaning(names[0], sizes) is not None)


def to_declare(component: Component, export: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what to add to conform.toml for a function that makes the component."""
    sizes = [argument.name for argument in component.arguments]
    names = [p["name"] for p in export["call"] or () if p["required"]]
    given = ", ".join(f'{name} = "{meaning(name, sizes) or "…"}"' for name in names)
    return (
        "if it returns the component, say so in conform.toml:",
        f"    [components.{component.name}]",
        f'    path = "{export["path"]}"',
        "    factory = true",
        *([f"    construct = {{ {given} }}"] if given else ()),
    )
