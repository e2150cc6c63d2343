"""The variants for the tests of this folder: every single change, and known models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from conformkit.spec.variants import CANONICAL, FAMOUS, Variant, alternatives, choices

_WITHOUT = {
    "kv_heads": "num_heads", "qk_norm": "none", "score_cap": 0.0, "sinks": False, "output_gate": "none",
    "output_projection": True, "qkv_bias": False, "score_scale": True, "rotary_fraction": 1.0,
    "window_rotary_base": 0.0, "window": 0,
}  # fmt: skip
"""What attention with a latent does not have, or what hides some of its clauses."""
NEEDED = {
    "norm_weight": {"placement": "pre"},
    "output_projection": {"placement": "pre"},
    "activation": {"experts": 0},
    "log_probabilities": {"logit_cap": 0.0},
    "sinusoid_layout": {"positions": "sinusoidal"},
    "sinusoid_frequencies": {"positions": "sinusoidal"},
    "position_offset": {"positions": "sinusoidal"},
    "positions_scale": {"positions": "sinusoidal"},
    "rotary_layout": {"positions": "rotary"},
    "rotary_base": {"positions": "rotary"},
    "rotary_fraction": {"positions": "rotary", "rotary_scaling": "none"},
    "window_rotary_base": {"positions": "rotary", "rotary_base": 500000.0, "window": 3, "window_layers": "even"},
    "rotary_scaling": {"positions": "rotary"},
    "rotary_factor": {"positions": "rotary", "rotary_scaling": "linear"},
    "rotary_length": {"positions": "rotary", "rotary_scaling": "llama3"},
    "rotary_low": {"positions": "rotary", "rotary_scaling": "llama3"},
    "rotary_high": {"positions": "rotary", "rotary_scaling": "yarn"},
    "rotary_whole_pairs": {"positions": "rotary", "rotary_scaling": "yarn"},
    "rotary_magnitude": {"positions": "rotary", "rotary_scaling": "yarn"},
    "latent": {"positions": "rotary", **_WITHOUT},
    "query_latent": {"positions": "rotary", "latent": "8", **_WITHOUT},
    "rotary_width": {"positions": "rotary", "latent": "8", **_WITHOUT},
    "value_width": {"positions": "rotary", "latent": "8", **_WITHOUT},
    "key_bias": {"qkv_bias": True},
    "window_layers": {"window": 2},
    "tied_scale": {"tied": True},
    "alibi_slopes": {"positions": "alibi"},
    "relative_buckets": {"positions": "relative"},
    "relative_distance": {"positions": "relative"},
    "relative_shared": {"positions": "relative"},
    "gate_limit": {"gated": True},
    "gate_offset": {"gated": True},
    "router_bias": {"experts": 4},
    "experts_active": {"experts": 8, "expert_weights": "all"},
    "expert_weights": {"experts": 4},
    "shared_expert": {"experts": 3},
}
"""By choice, the other choices without which it has no effect, or some of its clauses do not apply."""
OF_ENCODERS = ("segments", "pooler", "head_transform", "next_sentence_head", "pooling")
"""Choices that no model of core has; test_encoder_on_variants.py judges them."""
JOINED = 4
"""Single changes in one of few variants, at most."""


def single_changes() -> Iterator[tuple[str, Variant]]:
    """Yield each value of each choice but the canonical one, alone, with the other choices that it needs."""
    # sharing is for encoder-decoders; the reference samples in one way, others are tests/suite's affair
    others = (
        "shared_embeddings", "shared_positions", "temperature_last", "repetition_counts", "penalty_counts",
    )  # fmt: skip
    for field in (f for f in fields(Variant) if not f.name.startswith(others)):
        values = alternatives(field.name, field.default)
        for value in values if isinstance(choices()[field.name], tuple) else values[:2]:
            needs = NEEDED.get(field.name, {})
            yield f"{field.name}={value}", CANONICAL.but(**needs, **{field.name: value})


def every_variant() -> dict[str, Variant]:
    """Return the canonical variant, all single changes and the known models, by name."""
    return {"canonical": CANONICAL, **dict(single_changes()), **FAMOUS}


def few_variants() -> dict[str, Variant]:
    """Return the known models and as few more as hold every other value of core's choices, by name.

    Each of the others joins single changes that need nothing different; so few that one sees which of them is to blame.
    """
    known = {change for variant in FAMOUS.values() for change in variant.differences().items()}
    joined: list[tuple[list[str], dict[str, Any]]] = []
    for name, variant in single_changes():
        changes = variant.differences() | NEEDED.get(name.partition("=")[0], {})
        if name.startswith(OF_ENCODERS) or variant.differences().items() <= known:
            continue
        for names, held in joined:
            if len(names) < JOINED and all(held.get(choice, value) == value for choice, value in changes.items()):
                names.append(name)
                held.update(changes)
                break
        else:
            joined.append(([name], changes))
    return {**{", ".join(names): CANONICAL.but(**held) for names, held in joined}, **FAMOUS}


def named_as_in_the_law(weights: dict[str, Any]) -> dict[str, Any]:
    """Return weights with those of all experts stacked, (e, …), as the registry has them."""
    found, stacked = {}, defaultdict(list)
    for name, value in weights.items():
        expert = re.fullmatch(r"(.*)experts\.networks\.\d+\.(.+)", name)
        if expert:
            stacked[expert[1] + expert[2]].append(value)
        else:
            found[name.replace("experts.", "")] = value
    return found | {name: np.stack(values) for name, values in stacked.items()}
