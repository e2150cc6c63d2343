"""Declared choices that the definitions of encoders, encoder-decoders and images do not have: refused, not ignored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.spec.components import SEQ2SEQ_NAMES, SEVERAL_NAMES, components_of
from conformkit.spec.variants import Variant

__all__ = ["refuse_unexpressed"]

_ELSEWHERE = "leave it out, or declare it for other parts alone, under [components.TinyTransformerLM.variant]"
_WITHOUT_ATTENTION = ("TokenEmbedding", "BertEmbeddings", "PatchEmbedding")


def refuse_unexpressed(config: Config, profile: str) -> None:
    """Refuse a choice that the definition of a component ignores. Raises ConfigError, which names its key."""
    for name in components_of(profile):
        if name not in SEVERAL_NAMES or name in _WITHOUT_ATTENTION or config.component(name).skip:
            continue
        for key, what in _unexpressed(config.variant_for(name), name):
            own = key in config.component(name).variant
            place = f"components.{name}.variant.{key}" if own else f"variant.{key}"
            elsewhere = f"leave it out, or skip {name}" if own else _ELSEWHERE
            path = config.path or Path("conform.toml")
            raise ConfigError(path, None, f"{place}: the definition of {name} has no {what}", elsewhere)


def _unexpressed(variant: Variant, name: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of choices that a component's definition would ignore, and what they ask for."""
    if variant.sinks:
        yield "sinks", "attention sinks"
    if variant.output_gate != "none":
        yield "output_gate", "gate on the output"
    if variant.has_latent:
        yield "latent", "latent"
    if variant.experts:
        yield "experts", "experts"
    if name != "CrossAttention":  # positions of two sequences have no distance: it has neither in any model
        if variant.window:
            yield "window", "window"
        if variant.positions == "alibi":
            yield "positions", "ALiBi"
        if variant.positions == "relative" and name not in SEQ2SEQ_NAMES:
            yield "positions", "relative positions"
    if variant.tied_scale and name not in SEQ2SEQ_NAMES:
        yield "tied_scale", "division in front of its head"
