"""The variants for the tests of this folder: every single change, and known models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from conformkit.spec.variants import CANONICAL, FAMOUS, Variant, alternatives, choices

NEEDED = {
    "rotary_layout": {"positions": "rotary"},
    "rotary_base": {"positions": "rotary"},
    "rotary_fraction": {"positions": "rotary"},
    "rotary_scaling": {"positions": "rotary"},
    "rotary_factor": {"positions": "rotary", "rotary_scaling": "linear"},
    "rotary_length": {"positions": "rotary", "rotary_scaling": "llama3"},
    "rotary_low": {"positions": "rotary", "rotary_scaling": "llama3"},
    "rotary_high": {"positions": "rotary", "rotary_scaling": "yarn"},
    "rotary_whole_pairs": {"positions": "rotary", "rotary_scaling": "yarn"},
    "rotary_magnitude": {"positions": "rotary", "rotary_scaling": "yarn"},
    "key_bias": {"qkv_bias": True},
    "window_layers": {"window": 2},
    "alibi_slopes": {"positions": "alibi"},
    "experts_active": {"experts": 8, "expert_weights": "all"},
    "expert_weights": {"experts": 4},
    "shared_expert": {"experts": 3},
}
"""By choice, the other choices without which it has no effect."""


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
