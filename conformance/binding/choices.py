"""Declared choices that contradict each other, or have numbers outside of their range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.binding.toml_nodes import Node
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.spec.latent_attention import BESIDE_A_LATENT, WITHOUT_A_LATENT
from conformkit.spec.variants import CANONICAL, LATENTS, Variant, records

__all__ = ["check_choices"]


def check_choices(found: Mapping[str, Any], node: Node) -> None:
    """Refuse what no code can do; `found` are all choices that hold here, `node` is the table that declares some."""
    own = node.table()
    if "rotary_fraction" in own and found["rotary_fraction"] > 1:
        raise own["rotary_fraction"].error(
            f"it is {found['rotary_fraction']:g}, expected at most 1, the share of a head"
        )
    variant = CANONICAL.but(**found)
    for name in {"experts", "experts_active"} & own.keys():
        if variant.experts and variant.experts_active > variant.experts:
            raise own[name].error(
                f"experts is {variant.experts} and experts_active {variant.experts_active}",
                "expected no more active experts than there are",
            )
    _check_company(variant, own)
    _check_latent(variant, own)
    _check_buckets(variant, own)
    high = variant.rotary_high or (4.0 if variant.rotary_scaling == "llama3" else 32.0)
    for name in {"rotary_low", "rotary_high"} & own.keys():
        if variant.rotary_low >= high:
            raise own[name].error(
                f"rotary_low is {variant.rotary_low:g} and rotary_high {high:g}", "expected the first below the second"
            )


def _check_company(variant: Variant, own: Mapping[str, Node]) -> None:
    """Refuse choices about a part that the variant lacks."""
    for name in {"output_gate", "output_projection"} & own.keys():
        if variant.output_gate != "none" and not variant.output_projection:
            raise own[name].error("a gate on the output without an output projection", "declare one of the two")
    for name, record in records().items():
        if record.needs is not None and name in own and getattr(variant, name):
            part, lacking, wanted = record.needs
            if not getattr(variant, part):
                raise own[name].error(f"there is no {lacking}", f"declare {wanted} too, or leave it out")


def _check_latent(variant: Variant, own: Mapping[str, Node]) -> None:
    """Refuse what attention with a latent does not have, and what only it has."""
    if not variant.has_latent:
        for name in {*LATENTS} & own.keys():
            if getattr(variant, name) != getattr(CANONICAL, name):
                raise own[name].error("keys and values come from no latent", "declare latent too, or leave it out")
        return
    for name, only in BESIDE_A_LATENT.items():
        if getattr(variant, name) != only:
            where = own.get(name) or own.get("latent")
            if where is not None:
                what = f"with a latent, {name} is {getattr(variant, name)!r}"
                raise where.error(what, f"declare {choice_line(name, only)}, or no latent")
    for name in {"positions", "latent"} & own.keys():
        if variant.positions in WITHOUT_A_LATENT:
            what = f"attention with a latent has no positions = {variant.positions!r}"
            raise own[name].error(what, "declare other positions, or no latent")


def _check_buckets(variant: Variant, own: Mapping[str, Node]) -> None:
    """Refuse tables of relative positions that no formula fills."""
    if "relative_buckets" in own and (variant.relative_buckets % 4 or variant.relative_buckets < 4):
        raise own["relative_buckets"].error(f"it is {variant.relative_buckets}", "expected a multiple of 4")
    for name in {"relative_buckets", "relative_distance"} & own.keys():
        if variant.relative_distance <= variant.relative_buckets // 2:
            raise own[name].error(
                f"relative_buckets is {variant.relative_buckets} and relative_distance {variant.relative_distance}",
                "expected a distance above half of the buckets",
            )
