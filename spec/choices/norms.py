"""Norms: which, where in a block, and what they multiply by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import Rarity, choice, norms_hidden

__all__ = ["OfNorms"]


@dataclass(frozen=True)
class OfNorms:
    """Norms: which, where in a block, and what they multiply by."""

    norm: Literal["layernorm", "rmsnorm"] = choice(
        "layernorm",
        words={"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"},
        tried={"norms": 2},
        not_in=("CrossAttention", "BertEmbeddings"),
        idle=norms_hidden,
    )
    norm_eps: float = choice(
        1e-5,
        in_use=(1e-6, 1e-12, 1e-8, 1e-3, 1e-4, 1e-7, 1e-9, 1e-10),
        tried={"norms": 3},
        not_in=("CrossAttention",),
        idle=norms_hidden,
    )
    norm_bias: bool = choice(
        True,
        words={True: "norms with a shift β", False: "norms without a shift β"},
        tried={"norms": 4},
        not_in=("MultiHeadAttention", "CrossAttention", "BertEmbeddings"),
        idle=lambda v, _: v.norm == "rmsnorm" or v.norm_weight == "none",
    )
    """LayerNorm's β. RMSNorm never has one."""
    norm_deviation: Literal["biased", "sample", "population"] = choice(
        "biased",
        words={
            "biased": "the biased deviation in norms",
            "sample": "the sample deviation in norms",
            "population": "ε added to the biased deviation in norms",
        },
        tried={"norms": 5},
        not_in=("MultiHeadAttention", "CrossAttention", "BertEmbeddings"),
        idle=lambda v, _: v.norm == "rmsnorm",
    )
    """biased: √(var + eps), divisor D. sample: std + eps, divisor D - 1. population: std + eps, divisor D."""
    norm_weight: Literal["scale", "offset", "none"] = choice(
        "scale",
        words={
            "scale": "norms that multiply by γ",
            "offset": "norms that multiply by 1 + γ",
            "none": "norms without weights",
        },
        tried={"norms": 6},
        rarity=Rarity.RARE,
        idle=norms_hidden,
    )
    """What a normalized row is multiplied by: γ; 1 + γ; nothing, and nothing is added either."""
    placement: Literal["pre", "post", "sandwich", "output", "parallel", "parallel_two_norms", "deepnorm"] = choice(
        "pre",
        words={
            "pre": "pre-norm",
            "post": "post-norm",
            "sandwich": "norms before and after each sublayer",
            "output": "norms on what the sublayers add",
            "parallel": "attention and feed-forward in parallel behind one norm",
            "deepnorm": "DeepNorm",
            "parallel_two_norms": "attention and feed-forward in parallel, each behind a norm",
        },
        tried={"norms": 1},
        rare=("sandwich", "output", "parallel", "parallel_two_norms", "deepnorm"),
    )
    """pre: x + S(N x), post: N(x + S x), deepnorm: N(α x + S x), α = (2L)^¼ in a model of L blocks;
    sandwich: x + N'(S(N x)), output: x + N(S x), parallel: x + A(N x) + F(N x)
    """
