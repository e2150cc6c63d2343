"""Choices that have no effect in a component beside its others, so that no variant is computed twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformkit.conformance.diagnosis import rotary_variants, search_experts, search_relative
from conformkit.spec.components import ENCODER_NAMES, VIT_NAMES
from conformkit.spec.variants import CANONICAL, LATENTS, Variant

__all__ = ["IN_SCORES", "OF_QK_NORM", "distinct", "effective", "without_effect"]

IN_SCORES = frozenset({"rotary", "alibi", "relative"})
"""Positions that act within attention."""
OF_QK_NORM = ("norm", "norm_weight", "norm_eps")
"""Choices that attention shows only where its queries and keys have a norm."""


def without_effect(variant: Variant, name: str) -> list[str]:
    """Return the choices that change nothing in a component of this variant."""
    idle: list[str] = []
    added = name in {"PositionalEncoding", "TinyTransformerLM", "Transformer"} or name in (*ENCODER_NAMES, *VIT_NAMES)
    idle += ["positions"] if variant.positions not in IN_SCORES and not added else []
    idle += (
        [*OF_QK_NORM] if name == "MultiHeadAttention" and variant.qk_norm == "none" and not variant.has_latent else []
    )
    idle += [choice for choice in LATENTS if choice != "latent"] if not variant.has_latent else []
    idle += ["rotary_width"] if variant.positions != "rotary" else []
    idle += ["alibi_slopes"] if variant.positions != "alibi" else []
    idle += ["relative_buckets", "relative_distance"] if variant.positions != "relative" else []
    idle += (
        ["relative_shared"] if variant.positions != "relative" or name not in search_relative.OF_WHOLE_MODELS else []
    )
    idle += ["tied_scale"] if not variant.tied or name not in search_relative.OF_WHOLE_MODELS else []
    idle += ["window_rotary_base"] if not variant.window or variant.positions != "rotary" else []
    idle += ["window_layers"] if not variant.window or name != "TinyTransformerLM" else []
    idle += ["rotary_layout", "rotary_base", *rotary_variants.ROTARY_CHOICES] if variant.positions != "rotary" else []
    idle += rotary_variants.idle(variant)
    idle += search_experts.without_effect(variant)
    idle += ["gate_limit", "gate_offset"] if not variant.gated else []
    idle += ["shared_positions"] if variant.positions != "learned" else []
    idle += ["position_offset"] if variant.positions not in {"sinusoidal", "learned"} or not added else []
    idle += ["positions_scale"] if variant.positions not in {"sinusoidal", "learned"} else []
    idle += ["sinusoid_layout", "sinusoid_frequencies"] if variant.positions != "sinusoidal" else []
    idle += ["norm_bias", "norm_deviation"] if variant.norm == "rmsnorm" else []
    idle += ["norm_bias"] if variant.norm_weight == "none" else []
    idle += ["key_bias"] if not variant.qkv_bias else []
    idle += ["output_bias"] if not variant.output_projection else []
    return idle


def effective(variant: Variant, name: str) -> Variant:
    """Return the variant without choices that have no effect in a component."""
    idle = without_effect(variant, name)
    changes = {choice: getattr(CANONICAL, choice) for choice in idle}
    changes = {choice: value for choice, value in changes.items() if getattr(variant, choice) != value}
    return variant.but(**changes) if changes else variant


def distinct(found: Iterable[Variant], name: str, *known: Variant) -> Iterator[Variant]:
    """Yield variants as a component has them, each once, and none of the known ones."""
    seen = set(known)
    for variant in (effective(one, name) for one in found):
        if variant not in seen:
            seen.add(variant)
            yield variant
