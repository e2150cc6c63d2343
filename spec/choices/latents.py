"""Attention whose keys and values come from a latent: the widths."""

from __future__ import annotations

from dataclasses import dataclass

from conformkit.spec.choices.record import Rarity, choice

__all__ = ["OfLatents"]


@dataclass(frozen=True)
class OfLatents:
    """Attention whose keys and values come from a latent: the widths."""

    latent: str = choice(
        "0",
        words={"0": "keys and values straight from the input"},
        in_use=("d_model // 2", "d_model // 4", "8", "16", "32", "64", "512"),
        tried={"latents": 1},
        rarity=Rarity.READ,
    )
    """Width of the latent from which all heads' keys and values come, an expression; 0: they come from the input."""
    query_latent: str = choice(
        "0",
        words={"0": "queries straight from the input"},
        in_use=("d_model // 2", "d_model // 4", "8", "16", "32", "64", "1536"),
        tried={"latents": 2},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.has_latent,
    )
    """Width of the latent from which queries come, beside that of keys and values; 0: they come from the input."""
    rotary_width: str = choice(
        "head_width // 2",
        in_use=("head_width", "2", "4", "8", "16", "32", "64"),
        tried={"latents": 3},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.has_latent or v.positions != "rotary",
    )
    """With a latent: number of features that rotate, besides a head's width; keys share them."""
    value_width: str = choice(
        "head_width",
        words={"head_width": "values as wide as heads"},
        in_use=("2 * head_width", "8", "4", "2", "16", "32", "64", "128"),
        tried={"latents": 4},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.has_latent,
    )
    """With a latent: the width of a head's values."""
