"""What a submission's conform.toml may declare in grading: names and weights freely, the rest if the policy allows it.

A declaration that is not allowed is ignored, and the grade says so: everything else is still judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass, replace
from typing import Any

from conformkit.conformance.apps.grade.policy import Allowed
from conformkit.conformance.apps.grade.record import Advice
from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.binding.declarations import Excuse, excuses
from conformkit.conformance.binding.factors import FACTORS
from conformkit.conformance.binding.limits import MAX_SIZE, Range, SizeLimits
from conformkit.conformance.binding.passed import ORDER, without_kinds
from conformkit.conformance.binding.rules import WEIGHT, Rule
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.conformance.binding.tool_config import ToolConfig
from conformkit.spec.variants import CANONICAL

__all__ = ["looked_at", "paths", "permitted"]


def permitted(config: Config, allowed: Allowed) -> tuple[Config, list[str]]:
    """Return the configuration without disallowed declarations, and a sentence for each of those.

    Number formats come from the policy alone: unsupported formats are detected anyway.
    """
    notes: list[str] = []
    config, refused = _without_excuses(config, allowed)
    components = {name: _component(own, allowed, notes) for name, own in config.components.items()}
    kept = replace(
        config,
        dtypes=allowed.dtypes,
        variant=_variant(config.variant, allowed, "", notes),
        limits=_limits(config.limits, allowed, "", notes),
        components=components,
        refused=frozenset({"further", "defaults", "computed", "factors"} - set(allowed.excuses)),
        tools={name: replace(own, skip=False) for name, own in config.tools.items()},
    )
    notes += [_ignored(f"skip = true under [components.{name}]") for name, own in config.tools.items() if own.skip]
    if not set(config.dtypes) <= {*allowed.dtypes, *Config().dtypes}:
        notes.append(_ignored(f"dtypes = {list(config.dtypes)}"))
    return kept, notes + refused


def looked_at(told: Iterable[Excuse], allowed: Allowed) -> list[Advice]:
    """Return the declarations that counted and could hide a mistake, for a person to look at.

    Choices, sizes, formats and abilities that may lack are the policy's own words. Constants are in nearly every file:
    those that stand in place of a default are told, since callers of the contract get that default.
    """
    usual = {"variant", "limits", "dtypes", "skip"}
    counted = [found for found in told if found.kind not in usual and (found.kind != "constants" or found.instead)]
    if "float-masks" in allowed.lacking:
        counted = [found for found in counted if not found.key.endswith(".mask.kinds")]
    return [Advice("declaration", found.words + _instead(found), found.key) for found in counted]


def _instead(found: Excuse) -> str:
    return f", in place of the default of {found.instead}" if found.instead else ""


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


def _without_excuses(config: Config, allowed: Allowed) -> tuple[Config, list[str]]:
    """Return the configuration without excuses of kinds that are not allowed, and a sentence for each of those."""
    elsewhere = {"variant", "limits", "dtypes", "skip", "layout"}  # which have keys of their own, or show in a trial
    refused = [f for f in excuses(config) if f.kind not in elsewhere and f.kind not in allowed.excuses]
    kinds = {name: {f.kind for f in refused if f.component == name} for name in (*config.components, *config.tools)}
    components = {name: _plain(own, kinds[name]) for name, own in config.components.items()}
    tools = {name: _plain_tool(own, kinds[name]) for name, own in config.tools.items()}
    notes = [_ignored(f"{found.key}: {found.words}", "of a kind that") for found in refused]
    return replace(config, components=components, tools=tools), notes


def _plain(own: ComponentConfig, kinds: AbstractSet[str]) -> ComponentConfig:
    """Return what is declared about a component without excuses of these kinds."""
    plain: dict[str, Any] = {}
    if kinds & {"weights", *FACTORS}:
        plain["weights"] = tuple(_unscaled(rule, kinds) for rule in own.weights)
    if not kinds.isdisjoint(ORDER):
        plain |= {key: without_kinds(getattr(own, key), kinds) for key in ("construct", "call")}
        if own.generate is not None:
            plain["generate"] = replace(own.generate, call=without_kinds(own.generate.call, kinds))
        plain["methods"] = {n: replace(m, call=without_kinds(m.call, kinds)) for n, m in own.methods.items()}
    defaults = {"ignore": ("ignore",), "output": ("output",), "masks": ("mask", "masks"), "causal": ("causal",)}
    for kind, keys in defaults.items():
        plain |= {key: getattr(ComponentConfig(own.name), key) for key in keys if kind in kinds}
    if "generate" in kinds:
        plain["generate"], plain["methods"] = None, {}
    return replace(own, **plain)


def _plain_tool(own: ToolConfig, kinds: AbstractSet[str]) -> ToolConfig:
    plain: dict[str, Any] = {"output": None} if "output" in kinds else {}
    if not kinds.isdisjoint(ORDER):
        plain |= {key: without_kinds(getattr(own, key), kinds) for key in ("construct", "call")}
        plain["methods"] = {n: replace(m, call=without_kinds(m.call, kinds)) for n, m in own.methods.items()}
    if "masks" in kinds:
        plain["mask"] = ToolConfig(own.name).mask
    return replace(own, **plain)


def _unscaled(rule: Rule, kinds: AbstractSet[str]) -> Rule:
    """Return a rule whose parts are stored as they are, where their factor is of one of these kinds."""
    parts = (replace(p, expression=WEIGHT) if (p.factor or "weights") in kinds else p for p in rule.parts)
    return replace(rule, parts=tuple(parts))


def _component(own: ComponentConfig, allowed: Allowed, notes: list[str]) -> ComponentConfig:
    place = f"components.{own.name}."
    notes += [
        _ignored(f"{key} = true under [{place[:-1]}]")
        for key, out in (("skip", own.skip), ("unconfirmed", own.unconfirmed))
        if out
    ]
    return replace(
        own,
        skip=False,
        unconfirmed=False,
        variant=_variant(own.variant, allowed, place, notes),
        limits=_limits(own.limits, allowed, place, notes),
    )


def _variant(declared: Mapping[str, Any], allowed: Allowed, place: str, notes: list[str]) -> dict[str, Any]:
    kept = {}
    for name, value in declared.items():
        if value == getattr(CANONICAL, name) or value in allowed.variant.get(name, ()):
            kept[name] = value
        else:
            notes.append(_ignored(f"{choice_line(name, value)} under [{place}variant]"))
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


def _ignored(what: str, which: str = "which") -> str:
    return f"conform.toml declares {what}, {which} the policy does not allow; it was ignored"
