"""What moves between two variants, and the choices that no weights make up for."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.apps.port.moves import planned
from conformkit.spec.presets import PRESETS

SIZES = {"vocab_size": 13, "d_model": 24, "num_heads": 4, "d_ff": 28, "num_layers": 2, "block_size": 9}
FULL = {**SIZES, "kv_heads": 4, "head_width": 6}
GEMMA2, YARN = PRESETS["gemma2"], PRESETS["llama"].but(rotary_scaling="yarn")


@pytest.mark.parametrize(
    ("theirs", "choices"),
    [
        (GEMMA2, {"score_cap": 0.0}),
        (GEMMA2, {"logit_cap": 15.0}),
        (GEMMA2, {"rotary_fraction": 0.5}),
        (GEMMA2, {"rotary_scaling": "linear"}),
        (GEMMA2, {"qk_norm": "heads"}),
        (GEMMA2, {"sinks": True}),
        (PRESETS["bloom"], {"alibi_slopes": "geometric"}),
        (YARN, {"rotary_factor": 4.0}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_choice_that_weights_cannot_make_up_for_is_an_obstacle(theirs: Any, choices: dict[str, Any]) -> None:
    assert set(planned(theirs, theirs.but(**choices), FULL, FULL).obstacles) == set(choices)
    assert not planned(theirs, theirs, FULL, FULL).obstacles


def test_what_scaled_rotary_positions_need_counts_only_where_they_are_scaled() -> None:
    plain = PRESETS["llama"]
    assert not planned(plain, plain.but(rotary_factor=4.0), FULL, FULL).obstacles
