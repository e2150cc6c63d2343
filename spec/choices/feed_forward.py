"""The feed-forward network: its function, its gate, and experts in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import Rarity, choice

__all__ = ["OfFeedForward"]


@dataclass(frozen=True)
class OfFeedForward:
    """The feed-forward network: its function, its gate, and experts in its place."""

    activation: Literal["gelu", "gelu_tanh", "relu", "silu", "relu2", "quick_gelu"] = choice(
        "gelu",
        words={
            "gelu": "GELU",
            "gelu_tanh": "GELU's tanh approximation",
            "relu": "ReLU",
            "silu": "SiLU",
            "relu2": "the square of ReLU",
            "quick_gelu": "x σ(1.702 x)",
        },
        tried={"feed_forward": 1},
        rare=("quick_gelu",),
    )
    gated: bool = choice(
        False,
        words={True: "a gated feed-forward", False: "a feed-forward without a gate"},
        tried={"feed_forward": 2},
    )
    """down(act(gate x) * (up x)), as in SwiGLU."""
    gate_limit: float = choice(
        0.0,
        words={0.0: "a gate without limits"},
        in_use=(7.0, 10.0),
        tried={"feed_forward": 4},
        rarity=Rarity.RARE,
        needs=("gated", "gate", "gated = true"),
        idle=lambda v, _: not v.gated,
    )
    """Gated: what is activated is at most this number, and the other branch is within ± it; 0: neither is limited."""
    gate_offset: bool = choice(
        False,
        words={True: "a gate times the other branch plus 1", False: "a gate times the other branch"},
        tried={"feed_forward": 5},
        rarity=Rarity.RARE,
        needs=("gated", "gate", "gated = true"),
        idle=lambda v, _: not v.gated,
    )
    """Gated: the activated branch is multiplied by the other one plus 1."""
    experts: int = choice(
        0,
        words={0: "one feed-forward network for all positions"},
        in_use=(8, 4, 2, 3, 16, 6, 5, 32, 64),
        tried={"experts": 1},
        rarity=Rarity.READ,
    )
    """A router sends each position to some of so many feed-forward networks; 0: there is one, for all."""
    experts_active: int = choice(
        2,
        in_use=(1, 4, 3, 8, 6),
        tried={"experts": 2},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.experts,
    )
    """The number of experts that each position goes through, where there are experts."""
    expert_weights: Literal["selected", "all"] = choice(
        "selected",
        words={
            "selected": "experts weighted by the softmax over the selected ones",
            "all": "experts weighted by the softmax over all of them",
        },
        tried={"experts": 3},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.experts or v.experts_active == v.experts,
    )
    """What outputs are weighted by: the softmax of the selected experts' logits, or their entries in that of all."""
    router_bias: bool = choice(
        False,
        words={True: "a router with a bias", False: "a router without a bias"},
        tried={"experts": 4},
        rarity=Rarity.READ,
        needs=("experts", "router", "experts"),
        idle=lambda v, _: not v.experts,
    )
    """The router's logits have a bias."""
    shared_expert: bool = choice(
        False,
        words={True: "an expert for every position", False: "no shared expert"},
        tried={"experts": 5},
        rarity=Rarity.READ,
        idle=lambda v, _: not v.experts,
    )
    """One more network that every position goes through; its output is added as it is."""
