"""From names and paths to the two sides: what is given is found, loaded, and bound."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from conformkit.conformance.apps.port.checkpoint import WeightStore
from conformkit.conformance.apps.port.code import Code
from conformkit.conformance.apps.port.definition import Definition
from conformkit.conformance.apps.port.family import Family, family, family_of_class, read_settings
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.request import PortRequest
from conformkit.conformance.apps.port.safetensors_files import TensorEntry
from conformkit.conformance.apps.port.sides import LANGUAGE_MODEL
from conformkit.conformance.apps.port.slips import same_parameters, slipped, variant_said
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.diagnosis.undeclared import searched
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.finding import LoadFailure, find
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.variants import Variant

__all__ = ["code_side", "definition_of", "in_ratios", "settings_of"]

_PARTS = ("MultiHeadAttention", "FeedForward", "TransformerBlock", "TinyTransformerLM")
_LIMITS = Limits(call_seconds=300.0, memory_bytes=16 << 30)
_TRIES = 60
"""Assignments of weights that are tried in one variant: the names of one's own model are mostly clear."""
_TRIES_OF_THE_DECLARED, _TRIES_OF_A_SLIP = 1200, 12
"""The same where names do not tell which weight is which: in the declared variant, and in each that is near it."""
Step = Callable[[str, int], None]
_BIASES = {"qkv_bias": "q", "output_bias": "out", "ffn_bias": "up", "norm_bias": "norm1"}


def settings_of(request: PortRequest) -> dict[str, Any]:
    """Return the config.json that is given, or lies next to the weights. Raises Unportable."""
    if request.config is not None:
        return read_settings(request.config)
    if isinstance(request.weights, Path):
        folder = request.weights if request.weights.is_dir() else request.weights.parent
        if (folder / "config.json").is_file():
            return read_settings(folder / "config.json")
    return {}


# --- the definition --------------------------------------------------------------------------------------------------


def definition_of(name: str, settings: Mapping[str, Any], weights: WeightStore | None) -> Definition:
    """Return the definition as a family, in the variant that config.json or the names in the file show.

    Raises Unportable.
    """
    known = family(name)
    variant = known.variant(settings)
    if weights is not None and not settings:
        variant = variant.but(**dict(_seen(known, variant, weights.entries)))
    return Definition(known, in_ratios(variant, known.sizes(settings)), known.notes(settings))


def _seen(known: Family, variant: Variant, names: Mapping[str, TensorEntry]) -> Iterator[tuple[str, Any]]:
    """Yield the choices that the names in a file show: biases, whether there is a head, the number of experts."""
    one = next(
        (rule.target.partition("{e}")[0].rpartition("{i}")[2] for rule in known.rules if "{e}" in rule.target), ""
    )
    numbers = {found[1] for name in names if one and (found := re.search(rf"{re.escape(one)}(\d+)\.", name))}
    if variant.experts and numbers:
        yield "experts", len(numbers)
    stacked = {rule.target.rpartition("{i}")[2] for rule in known.rules if (rule.axes or "").startswith("e ")}
    stacks = (entry.shape[0] for name, entry in names.items() if stacked and name.endswith(tuple(stacked)))
    if count := next(stacks, 0):
        yield "experts", count
    ends = {
        part.name.replace("blocks.{i}.", "").replace("attention.", "").replace("feed_forward.", ""):
            rule.target.rpartition("{i}")[2]
        for rule in known.rules for part in rule.parts
    }  # fmt: skip

    def there(part: str) -> bool:
        return any(name.endswith(ends[part]) for name in names)

    for choice, part in _BIASES.items():
        if f"{part}.bias" in ends and (choice != "norm_bias" or variant.norm == "layernorm"):
            yield choice, there(f"{part}.bias")
    if "head.weight" in ends and not variant.tied:
        yield "tied", not there("head.weight")


def in_ratios(variant: Variant, sizes: Mapping[str, int]) -> Variant:
    """Return a variant whose heads are in the proportions of these sizes, at any other sizes too."""
    heads, width, fewer = (sizes.get(name) for name in ("num_heads", "head_width", "kv_heads"))
    if heads and fewer and heads % fewer == 0:
        ratio = heads // fewer
        variant = variant.but(kv_heads="num_heads" if ratio == 1 else "1" if fewer == 1 else f"num_heads // {ratio}")
    if heads and width and (wide := Fraction(width * heads, sizes["d_model"])) != 1:
        over = "num_heads" if wide.denominator == 1 else f"({wide.denominator} * num_heads)"
        variant = variant.but(head_width=f"{wide.numerator} * d_model // {over}")
    return variant


# --- code ------------------------------------------------------------------------------------------------------------


@contextmanager
def code_side(
    text: str,
    warm: WorkerFactory | None,
    *,
    like: Variant | None,
    settings: Mapping[str, Any],
    isolation: str = "process",
    step: Step = lambda _what, _total: None,
) -> Iterator[Code]:
    """Load and bind what a name or a path stands for: code, or a class of transformers.

    `like` is the variant of the other side, in which it is bound where its own declaration does not give its numbers;
    `settings` is the config.json of a class of transformers.
    Raises Unportable, ConfigError.
    """
    with _blamed(text):
        yield from _opened(text, warm, like, settings, isolation, step)


@contextmanager
def _blamed(text: str) -> Iterator[None]:
    """Say which of the two sides could not be loaded."""
    try:
        yield
    except LoadFailure as failure:
        where = (f"where: {failure.where}",) if failure.where else ()
        raise Unportable(f"{text} cannot be used: {failure.problem}", advice=(*where, *failure.advice)) from failure


def _opened(
    text: str, warm: WorkerFactory | None, like: Variant | None, settings: Mapping[str, Any], isolation: str,
    step: Step,
) -> Iterator[Code]:  # fmt: skip
    known = family_of_class(text)
    if known is not None:
        request = RunRequest(
            "transformers", config=known.declaration(_variant_of(known, settings, like)), limits=_LIMITS
        )
        request = replace(request, isolation=isolation)
        located = find(request, Location("module", _installed("transformers")))
        with opened(request, warm, located=located, components={LANGUAGE_MODEL.name}) as (implementation, _):
            yield replace(_model_of(text, implementation), family=known, notes=known.notes(settings))
        return
    request = RunRequest(text, limits=_LIMITS, isolation=isolation, tries=_TRIES)
    with opened(request, warm, located=find(request), components=_PARTS) as (implementation, _):
        yield _model_of(text, implementation, like, step)


def _installed(package: str) -> str:
    """Return the name of a package. Raises Unportable where it is not installed."""
    if importlib.util.find_spec(package) is None:
        raise Unportable(f"{package} is not installed", advice=(f"pip install {package}, or use --like",))
    return package


def _variant_of(known: Family, settings: Mapping[str, Any], like: Variant | None) -> Variant:
    """Return the variant of a family; without a config.json, what one would say follows the other side."""
    variant = in_ratios(known.variant(settings), known.sizes(settings))
    if like is None or settings:
        return variant
    settable = {name for choice in known.tables["choices"].values() for name in choice["choices"]}
    words = {
        n: set(c["values"].values()) for c in known.tables["choices"].values() if "values" in c for n in c["choices"]
    }
    same = {n: getattr(like, n) for n in settable if n not in words or getattr(like, n) in words[n]}
    heads = {n: getattr(like, n) for n in ("kv_heads", "head_width") if n in known.tables["sizes"].values()}
    return variant.but(**same, **heads)


def _model_of(
    text: str, implementation: Implementation, like: Variant | None = None,
    step: Step = lambda _what, _total: None,
) -> Code:  # fmt: skip
    if not implementation.has(LANGUAGE_MODEL.name):
        unusable = implementation.unusable.get(LANGUAGE_MODEL.name)
        problem = unusable.problem if unusable else f"it exports no {LANGUAGE_MODEL.name}"
        where = (unusable.where,) if unusable and unusable.where else ()
        advice = ("say in conform.toml where the model is; conform adapt drafts it",)
        raise Unportable(f"{text} cannot be bound: {problem}", advice=(*where, *advice))
    bound = implementation.subject(LANGUAGE_MODEL.name).bound
    if bound.failure is not None:
        raise Unportable(f"{text} cannot be built and called: {bound.failure}")
    notes = () if bound.fits else _bound_otherwise(text, implementation, like, step)
    bound = implementation.subject(LANGUAGE_MODEL.name).bound
    if bound.rules is None:
        raise Unportable(f"the weights of {text} cannot be bound", advice=bound.unbound)
    return Code(text, implementation.subject(LANGUAGE_MODEL.name), implementation, notes=notes)


def _bound_otherwise(text: str, implementation: Implementation, like: Variant | None, step: Step) -> tuple[str, ...]:
    """Bind the model in another variant whose numbers it gives: that of the other side, or the nearest one.

    Where names leave no doubt which weight is which, variants are tried on what the model says with known weights;
    where none gives that, the code is compared as its names say. Else the declared variant is tried with many
    assignments, each near it with a few, and variants of parts if it has parts.
    """
    undeclared = "ours gives the numbers of a variant that its conform.toml does not declare"
    name, subject = LANGUAGE_MODEL.name, implementation.subject(LANGUAGE_MODEL.name)
    clear = subject.bound.rules is not None
    if clear:
        step("looking for the variant of ours", 1)
        found = variant_said(Code(text, subject, implementation), like)
        if found is not None and implementation.rebind_as(name, found):
            return (f"{undeclared}: the one of theirs",) if found == like else (undeclared,)
    else:
        step("looking for the order of your weights", 1)
        if implementation.rebind_as(name, subject.variant, _TRIES_OF_THE_DECLARED):
            return ()
    if like is not None and implementation.rebind_as(name, like):
        return (f"{undeclared}: the one of theirs",)
    slips = [v for v in slipped(subject.variant, like) if not clear or not same_parameters(subject.variant, v)]
    step("looking for the variant of ours", len(slips))
    for variant in slips:
        step("", 0)
        if implementation.rebind_as(name, variant, None if clear else _TRIES_OF_A_SLIP):
            return (undeclared,)
    if clear or not any(implementation.has(part) for part in _PARTS[:-1]):
        return ()
    step("looking for the variant of ours, part by part", 1)
    try:
        found = searched(implementation).found(name)
    except PatternError:
        found = None
    return (undeclared,) if found is not None and implementation.rebind_as(name, found) else ()
