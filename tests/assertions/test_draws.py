"""Draws: the same for everybody, different for another clause or seed, and awkward on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.assertions.draws import Draw
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL

SEEDS = st.integers(0, 10_000)
BLOCK = COMPONENTS["TransformerBlock"].parameters(
    {"d_model": 12, "num_heads": 3, "kv_heads": 3, "head_width": 4, "d_ff": 20, "causal": True},
    CANONICAL.but(qkv_bias=True, output_bias=True),
)
MAKERS: dict[str, Callable[[Draw], Any]] = {
    "values": lambda draw: draw.values(3, 5),
    "uniform": lambda draw: draw.uniform(3, 5),
    "ids": lambda draw: draw.ids(1000, 3, 5),
    "permutation": lambda draw: draw.permutation(50),
    "integer": lambda draw: np.array(draw.integer(0, 10**9)),
    "mask": lambda draw: draw.mask(6, 7),
    "qkv": lambda draw: np.concatenate([a.ravel() for a in draw.qkv((2,))]),
    "weights": lambda draw: np.concatenate([a.ravel() for a in draw.weights(BLOCK).values()]),
}
parametrized = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@parametrized
def test_the_same_seed_and_clause_give_the_same(make: Callable[[Draw], Any]) -> None:
    assert np.array_equal(make(Draw(7, "SDPA-SCALE")), make(Draw(7, "SDPA-SCALE")))


@parametrized
def test_another_seed_gives_other_draws(make: Callable[[Draw], Any]) -> None:
    assert not np.array_equal(make(Draw(7, "SDPA-SCALE")), make(Draw(8, "SDPA-SCALE")))


@parametrized
def test_another_clause_gives_other_draws(make: Callable[[Draw], Any]) -> None:
    assert not np.array_equal(make(Draw(7, "SDPA-SCALE")), make(Draw(7, "SDPA-FORMULA")))


@parametrized
def test_the_second_draw_is_another_one(make: Callable[[Draw], Any]) -> None:
    draw = Draw(7, "SDPA-SCALE")
    assert not np.array_equal(make(draw), make(draw))


def test_the_first_numbers_stay_what_they_are() -> None:
    """A run is repeated by its seed alone, so draws must not change unnoticed."""
    assert Draw(0, "SDPA-SCALE").values(2).tolist() == pytest.approx([-0.77813023, -0.12531109])
    assert Draw(7, "SDPA-SCALE").ids(100, 5).tolist() == [60, 32, 19, 30, 30]


@pytest.mark.parametrize("name", ["values", "uniform", "qkv", "weights"])
@given(seed=SEEDS)
def test_numbers_are_float64_that_float32_holds_exactly(name: str, seed: int) -> None:
    numbers = MAKERS[name](Draw(seed, "X-Y"))
    assert numbers.dtype == np.float64
    assert np.isfinite(numbers).all()
    assert np.array_equal(numbers.astype(np.float32).astype(np.float64), numbers)


@given(SEEDS, st.floats(1e-3, 1e3))
def test_values_have_the_wanted_spread(seed: int, scale: float) -> None:
    assert Draw(seed, "X-Y").values(4000, scale=scale).std() == pytest.approx(scale, rel=0.15)


@given(SEEDS, st.floats(-5.0, 0.0), st.floats(0.5, 5.0))
def test_uniform_numbers_stay_between_their_ends(seed: int, low: float, high: float) -> None:
    numbers = Draw(seed, "X-Y").uniform(50, low=low, high=high)
    assert numbers.min() >= np.float32(low)
    assert numbers.max() <= np.float32(high)


@given(SEEDS, st.integers(1, 30))
def test_ids_lie_in_the_vocabulary(seed: int, vocabulary: int) -> None:
    ids = Draw(seed, "X-Y").ids(vocabulary, 40)
    assert ids.dtype == np.int64
    assert ids.min() >= 0
    assert ids.max() < vocabulary


@given(SEEDS, st.integers(2, 12))
def test_a_permutation_moves_everything(seed: int, count: int) -> None:
    order = Draw(seed, "X-Y").permutation(count)
    assert sorted(order) == list(range(count))
    assert not (order == np.arange(count)).any()


@pytest.mark.parametrize("count", [0, 1])
def test_a_permutation_of_too_few_is_the_only_one(count: int) -> None:
    assert Draw(0, "X-Y").permutation(count).tolist() == list(range(count))


@given(SEEDS, st.integers(-3, 3), st.integers(0, 4))
def test_an_integer_lies_between_its_ends(seed: int, low: int, extent: int) -> None:
    assert low <= Draw(seed, "X-Y").integer(low, low + extent) <= low + extent


def test_an_integer_reaches_both_ends() -> None:
    draw = Draw(0, "X-Y")
    assert {draw.integer(2, 4) for _ in range(200)} == {2, 3, 4}


@given(SEEDS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.floats(0.0, 1.0))
def test_a_mask_leaves_each_query_a_key_and_hides_something(
    seed: int, batch: int, queries: int, keys: int, allowed: float
) -> None:
    mask = Draw(seed, "X-Y").mask(batch, queries, keys, allowed=allowed)
    assert mask.dtype == np.bool_
    assert mask.shape == (batch, queries, keys)
    assert mask.any(axis=-1).all()
    assert keys == 1 or not mask.all()


def test_weights_have_the_shapes_of_their_parameters() -> None:
    weights = Draw(0, "X-Y").weights(BLOCK)
    assert {name: value.shape for name, value in weights.items()} == {n: p.shape for n, p in BLOCK.items()}


def test_scales_of_norms_lie_around_one_and_shifts_around_zero() -> None:
    draws = [Draw(seed, "X-Y").weights(BLOCK) for seed in range(50)]
    assert np.mean([w["norm1.weight"] for w in draws]) == pytest.approx(1.0, abs=0.1)
    assert np.mean([w["norm1.bias"] for w in draws]) == pytest.approx(0.0, abs=0.1)


def test_gain_enlarges_matrices_only() -> None:
    one, ten = (Draw(0, "X-Y").weights(BLOCK, gain=gain) for gain in (1.0, 10.0))
    assert np.allclose(ten["attention.q.weight"], 10.0 * one["attention.q.weight"])
    assert np.array_equal(ten["norm1.weight"], one["norm1.weight"])
    assert np.array_equal(ten["attention.q.bias"], one["attention.q.bias"])


def test_no_two_extents_of_attention_inputs_are_equal() -> None:
    q, k, v = Draw(0, "X-Y").qkv((2,))
    extents = {q.shape[-2], q.shape[-1], k.shape[-2], v.shape[-1]}
    assert len(extents) == 4
    assert k.shape[-1] == q.shape[-1]
    assert v.shape[-2] == k.shape[-2]
