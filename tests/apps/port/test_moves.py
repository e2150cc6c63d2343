"""What moves between two variants, and the choices that no weights make up for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformkit.conformance.apps.port.moves import planned
from conformkit.conformance.apps.port.proof import drawn_weights
from conformkit.conformance.apps.port.python_map import _written
from conformkit.conformance.binding.affine import Affine
from conformkit.spec.components import COMPONENTS
from conformkit.spec.presets import PRESETS

SIZES = {"vocab_size": 13, "d_model": 24, "num_heads": 4, "d_ff": 28, "num_layers": 2, "block_size": 9}
FULL = {**SIZES, "kv_heads": 4, "head_width": 6}
HALF = {"rotary_fraction": 0.5}
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


@pytest.mark.parametrize(("scaling", "usual"), [("yarn", 32.0), ("llama3", 4.0)])
def test_a_default_that_the_other_side_writes_out_is_no_obstacle(scaling: Any, usual: float) -> None:
    scaled = PRESETS["llama"].but(rotary_scaling=scaling)
    assert not planned(scaled, scaled.but(rotary_high=usual), FULL, FULL).obstacles


def test_a_window_wider_than_what_is_compared_counts_where_its_layers_turn_otherwise() -> None:
    deep, gemma3 = {**FULL, "num_layers": 7}, PRESETS["gemma3"]
    assert set(planned(gemma3, gemma3.but(window=0), deep, deep).obstacles) == {"window"}
    assert not planned(GEMMA2, GEMMA2.but(window=0), deep, deep).obstacles


def test_a_factor_is_not_rounded_to_the_stored_format() -> None:
    plain = PRESETS["llama"]
    plan = planned(plain.but(embedding_scale=True), plain, FULL, FULL)
    stored = np.random.default_rng(0).standard_normal((13, 24)).astype(np.float16)
    np.testing.assert_array_equal(
        plan.array("embedding.weight", lambda _: stored), stored.astype(np.float64) * np.sqrt(24)
    )


@pytest.mark.parametrize(
    "choices",
    [{}, HALF, {"qk_norm": "heads"}, {"qk_norm": "all"}, {"qk_norm": "heads", **HALF}],
    ids=lambda choices: ", ".join(map(str, choices.values())) or "whole heads",
)
@pytest.mark.parametrize("layout", ["pairs", "halves"])
def test_rotary_pairs_and_halves_say_the_same(layout: str, choices: dict[str, Any]) -> None:
    theirs = PRESETS["llama"].but(rotary_layout=layout, qkv_bias=True, **choices)
    ours = theirs.but(rotary_layout={"pairs": "halves", "halves": "pairs"}[layout])
    sizes = {**FULL, "d_model": 32, "head_width": 8}
    plan, model = planned(theirs, ours, sizes, sizes), COMPONENTS["TinyTransformerLM"]
    drawn = drawn_weights(model.parameters(sizes, theirs), 0)
    drawn |= {n: a + np.random.default_rng(len(n)).standard_normal(a.shape) for n, a in drawn.items() if "norm" in n}
    made = {name: plan.array(name, drawn.__getitem__) for name in plan.parameters}
    ids = {"ids": np.arange(9)[None]}
    said = model.forward(drawn, ids, sizes, theirs)
    np.testing.assert_allclose(model.forward(made, ids, sizes, ours), said, atol=1e-9)


def test_steps_on_each_number_are_written_as_one() -> None:
    back, root = Affine(1.0, -1.0), 24**0.5
    assert list(_written("x", ["x = a", Affine(1.0, 1.0), back, "x = b"])) == ["x = a", "x = b"]
    assert list(_written("x", [Affine(root, 0.0), Affine(1 / root, 0.0)])) == []
    assert list(_written("x", [Affine(2.0, 1.0), Affine(3.0, -1.0)])) == ["x = x * 6.0 + 2.0"]
    assert list(_written("x", [Affine(1.0, 1.0), "x = x[1:]", back])) == ["x = x + 1.0", "x = x[1:]", "x = x - 1.0"]
