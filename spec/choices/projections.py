"""Linear maps of attention and the feed-forward network: biases, numbers and widths of heads."""

from __future__ import annotations

from dataclasses import dataclass

from conformkit.spec.choices.record import choice

__all__ = ["OfProjections"]


@dataclass(frozen=True)
class OfProjections:
    """Linear maps of attention and the feed-forward network: biases, numbers and widths of heads."""

    qkv_bias: bool = choice(
        False,
        words={True: "queries, keys and values with biases", False: "queries, keys and values without biases"},
        tried={"attention": 1},
    )
    key_bias: bool = choice(
        True,
        words={
            True: "keys with a bias as queries and values",
            False: "keys without a bias beside queries and values with biases",
        },
        tried={"attention": 2},
        idle=lambda v, _: not v.qkv_bias,
    )
    """Whether keys have a bias where queries and values have one: it changes no output."""
    output_projection: bool = choice(
        True,
        words={True: "attention with an output projection", False: "attention without an output projection"},
        tried={"attention": 4},
    )
    output_bias: bool = choice(
        False,
        words={True: "an output projection with a bias", False: "an output projection without a bias"},
        tried={"attention": 3},
        idle=lambda v, _: not v.output_projection,
    )
    ffn_bias: bool = choice(
        True,
        words={True: "a feed-forward with biases", False: "a feed-forward without biases"},
        tried={"feed_forward": 3},
    )
    kv_heads: str = choice(
        "num_heads",
        in_use=("1", "num_heads // 2", "num_heads // 4", "num_heads // 3", "2", "4"),
        tried={"attention": 5},
    )
    """Number of key/value heads, an expression; fewer than `num_heads` is grouped-query attention."""
    head_width: str = choice(
        "d_model // num_heads",
        in_use=("d_model", "2 * d_model // num_heads", "d_model // 2", "2", "4", "6", "8", "16", "32", "64"),
        tried={"attention": 6},
    )
