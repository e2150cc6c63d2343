"""What a submission's conform.toml may declare in grading: names and weights freely, the rest if the policy allows it.

A declaration that is not allowed is ignored, and the grade says so: everything else is still judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from conformkit.conformance.apps.grade.policy import Allowed
from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.binding.limits import MAX_SIZE, Range, SizeLimits
from conformkit.spec.variants import CANONICAL, written

__all__ = ["paths", "permitted"]


def permitted(config: Config, allowed: Allowed) -> tuple[Config, list[str]]:
    """Return the configuration without disallowed declarations, and a sentence for each of those.

    Number formats come from the policy alone: unsupported formats are detected anyway.
    """
    notes: list[str] = []
    components = {name: _component(own, allowed, notes) for name, own in config.components.items()}
    kept = replace(
        config,
        dtypes=allowed.dtypes,
        variant=_variant(config.variant, allowed, "", notes),
        limits=_limits(config.limits, allowed, "", notes),
        components=components,
        tools={name: replace(own, skip=False) for name, own in config.tools.items()},
    )
    notes += [_ignored(f"skip = true under [components.{name}]") for name, own in config.tools.items() if own.skip]
    if not set(config.dtypes) <= {*allowed.dtypes, *Config().dtypes}:
        notes.append(_ignored(f"dtypes = {list(config.dtypes)}"))
    return kept, notes


def paths(config: Config) -> Iterator[str]:
    """Yield every name of a module or of an object in a module that a configuration makes the worker look up."""
    if config.module:
        yield config.module
    for part in (*config.components.values(), *config.tools.values()):
        yield from _paths(part)


def _paths(part: Any) -> Iterator[str]:
    """Yield those in one part, in tables of any depth."""
    if isinstance(part, Arguments):
        yield from part.paths()
    elif isinstance(part, Mapping):
        for inner in part.values():
            yield from _paths(inner)
    elif is_dataclass(part):
        for entry in fields(part):
            value = getattr(part, entry.name)
            if entry.name == "path" and value:
                yield value
            yield from _paths(value)


def _component(own: ComponentConfig, allowed: Allowed, notes: list[str]) -> ComponentConfig:
    place = f"components.{own.name}."
    if own.skip:
        notes.append(_ignored(f"skip = true under [{place[:-1]}]"))
    return replace(
        own,
        skip=False,
        variant=_variant(own.variant, allowed, place, notes),
        limits=_limits(own.limits, allowed, place, notes),
    )


def _variant(declared: Mapping[str, Any], allowed: Allowed, place: str, notes: list[str]) -> dict[str, Any]:
    kept = {}
    for name, value in declared.items():
        if value == getattr(CANONICAL, name) or value in allowed.variant.get(name, ()):
            kept[name] = value
        else:
            notes.append(_ignored(f"{written(name, value)} under [{place}variant]"))
    return kept


def _limits(declared: SizeLimits, allowed: Allowed, place: str, notes: list[str]) -> SizeLimits:
    kept: dict[str, Range] = {}
    for name, limit in declared.sizes.items():
        if _no_narrower(limit, allowed.sizes.of(name)):
            kept[name] = limit
        else:
            notes.append(_ignored(f"{name} under [{place}limits]"))
    rank = declared.rank if declared.rank == allowed.sizes.rank else None
    if rank != declared.rank:
        notes.append(_ignored(f"rank = {declared.rank} under [{place}limits]"))
    return SizeLimits(kept, rank)


def _no_narrower(declared: Range, allowed: Range) -> bool:
    """Whether a declared range holds every size that the allowed one does."""
    if declared == allowed:
        return True
    if declared.equals is not None or allowed.equals is not None:
        return False
    low, high = allowed.min or 1, allowed.max or MAX_SIZE
    step = (allowed.multiple_of or 1) % (declared.multiple_of or 1) == 0
    return (declared.min or 1) <= low and (declared.max or MAX_SIZE) >= high and step


def _ignored(what: str) -> str:
    return f"conform.toml declares {what}, which the policy does not allow; it was ignored"
