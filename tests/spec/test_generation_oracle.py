"""The oracle of generation, against hand values and against loops that do one thing at a time."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from conformkit.spec.generation import continue_greedily, next_token_probabilities

LOGITS = np.array([2.0, 1.0, 0.5, 0.1, -0.5])
QUARTERS = np.log(np.array([0.5, 0.25, 0.125, 0.125]))


def by_hand(logits: list[float], temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    """One row: a list of (probability, id), cut from the end, read back into the order of ids."""
    top = max(logits)
    powers = [math.exp((z - top) / temperature) for z in logits]
    ranked = sorted(((power / sum(powers), i) for i, power in enumerate(powers)), key=lambda pair: (-pair[0], pair[1]))
    if top_k is not None:
        ranked = ranked[:top_k]
    if top_p is not None:
        all_of_them, kept, reached = sum(p for p, _ in ranked), [], 0.0
        for p, i in ranked:
            if reached < top_p:
                kept.append((p, i))
                reached += p / all_of_them
        ranked = kept
    total = sum(p for p, _ in ranked)
    found = dict.fromkeys(range(len(logits)), 0.0) | {i: p / total for p, i in ranked}
    return [found[i] for i in range(len(logits))]


@pytest.mark.parametrize(
    ("temperature", "want"),
    [
        (0.5, [0.823566, 0.111458, 0.041003, 0.018424, 0.005549]),
        (1.0, [0.548648, 0.201836, 0.122420, 0.082060, 0.045036]),
        (2.0, [0.363353, 0.220385, 0.171636, 0.140524, 0.104102]),
    ],
)
def test_temperature_divides_the_logits(temperature: float, want: list[float]) -> None:
    np.testing.assert_allclose(next_token_probabilities(LOGITS, temperature=temperature), want, atol=5e-7)


def test_powers_of_probabilities_need_renormalizing() -> None:
    plain = next_token_probabilities(LOGITS)
    assert (plain**0.5).sum() == pytest.approx(2.0385, abs=5e-5)
    assert (plain**2).sum() == pytest.approx(0.3655, abs=5e-5)
    np.testing.assert_allclose(plain**0.5 / (plain**0.5).sum(), next_token_probabilities(LOGITS, temperature=2.0))


@pytest.mark.parametrize(
    ("top_k", "temperature", "want"),
    [
        (2, 1.0, [0.731059, 0.268941, 0, 0, 0]),
        (3, 1.0, [0.628532, 0.231224, 0.140244, 0, 0]),
        (2, 0.5, [0.880797, 0.119203, 0, 0, 0]),
        (1, 3.0, [1, 0, 0, 0, 0]),
    ],
)
def test_top_k_keeps_the_k_most_probable(top_k: int, temperature: float, want: list[float]) -> None:
    found = next_token_probabilities(LOGITS, temperature=temperature, top_k=top_k)
    np.testing.assert_allclose(found, want, atol=5e-7)


@pytest.mark.parametrize("top_k", [5, 6, 100])
def test_top_k_beyond_the_vocabulary_keeps_all(top_k: int) -> None:
    found = next_token_probabilities(LOGITS, top_k=top_k)
    np.testing.assert_allclose(found, next_token_probabilities(LOGITS), rtol=1e-14)


@pytest.mark.parametrize(("top_p", "kept"), [(1e-9, 1), (0.5, 1), (0.55, 2), (0.7, 2), (0.8, 3), (0.9, 4), (0.96, 5)])
def test_top_p_keeps_the_id_that_crosses(top_p: float, kept: int) -> None:
    found = next_token_probabilities(LOGITS, top_p=top_p)
    np.testing.assert_array_equal(found > 0, np.arange(5) < kept)
    np.testing.assert_allclose(found, next_token_probabilities(LOGITS, top_k=kept), rtol=1e-12)


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (1.0, 4)])
def test_a_sum_that_hits_p_exactly_is_enough(top_p: float, kept: int) -> None:
    assert int((next_token_probabilities(QUARTERS, top_p=top_p) > 0).sum()) == kept


def test_temperature_comes_before_top_p() -> None:
    found = next_token_probabilities(LOGITS, temperature=0.5, top_p=0.8)
    np.testing.assert_array_equal(found, [1, 0, 0, 0, 0])
    assert int((next_token_probabilities(LOGITS, top_p=0.8) > 0).sum()) == 3


def test_temperature_may_come_last() -> None:
    found = next_token_probabilities(LOGITS, temperature=0.5, top_p=0.8, temperature_last=True)
    kept = next_token_probabilities(LOGITS, top_p=0.8) > 0
    want = np.where(kept, np.exp(2.0 * LOGITS), 0.0)
    np.testing.assert_allclose(found, want / want.sum())
    assert int((found > 0).sum()) == 3


def test_top_k_comes_before_top_p() -> None:
    # of three ids the first has 0.6285, of all five 0.5486
    np.testing.assert_array_equal(next_token_probabilities(LOGITS, top_k=3, top_p=0.6), [1, 0, 0, 0, 0])
    assert int((next_token_probabilities(LOGITS, top_p=0.6) > 0).sum()) == 2


def test_each_row_has_its_own_set() -> None:
    rows = np.stack([LOGITS, np.zeros(5), LOGITS[::-1] * 3])
    found = next_token_probabilities(rows, top_p=0.7)
    assert (found > 0).sum(axis=-1).tolist() == [2, 4, 1]
    assert found[2].argmax() == 4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("top_k", [None, 1, 3, 9])
@pytest.mark.parametrize("top_p", [None, 0.2, 0.6, 0.93])
def test_probabilities_are_those_of_one_row_at_a_time(
    seed: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    logits = np.random.default_rng(seed).normal(0.0, 2.0, (3, 7))
    found = next_token_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    want = [by_hand(row.tolist(), temperature, top_k, top_p) for row in logits]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)


def weighted_sum(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Logits (B, T, 7) of a toy model whose next id depends on the place and value of every input."""
    places = np.cumsum(ids * (1 + np.arange(ids.shape[1])), axis=1)  # (B, T)
    return np.asarray(-np.abs(np.arange(7) - (places % 7)[..., None]), np.float64)


@pytest.mark.parametrize("block_size", [1, 3, 20])
def test_greedy_text_is_that_of_one_row_and_one_id_at_a_time(block_size: int) -> None:
    prompts = np.random.default_rng(2).integers(0, 7, (4, 5))
    found = continue_greedily(weighted_sum, prompts, 8, block_size)
    for row, text in zip(prompts.tolist(), found.tolist(), strict=True):
        for _ in range(8):
            context = row[max(len(row) - block_size, 0) :]
            row.append(sum(i * (place + 1) for place, i in enumerate(context)) % 7)
        assert text == row


def test_no_steps_leave_the_prompt() -> None:
    prompts = np.array([[3, 1]])
    np.testing.assert_array_equal(continue_greedily(weighted_sum, prompts, 0, 4), prompts)


@pytest.mark.parametrize(("min_p", "kept"), [(0.0, 4), (0.25, 4), (0.26, 2), (0.5, 2), (0.51, 1), (1.0, 1)])
def test_min_p_keeps_ids_with_at_least_that_share_of_the_highest(min_p: float, kept: int) -> None:
    found = next_token_probabilities(QUARTERS, min_p=min_p)
    np.testing.assert_allclose(found, next_token_probabilities(QUARTERS, top_k=kept), rtol=1e-12)


def test_min_p_is_relative_to_the_highest_of_each_row_at_its_temperature() -> None:
    rows = np.stack([QUARTERS, np.zeros(4), QUARTERS[::-1]])
    assert (next_token_probabilities(rows, min_p=0.4) > 0).sum(axis=-1).tolist() == [2, 4, 2]
    assert (next_token_probabilities(rows, min_p=0.4, temperature=0.5) > 0).sum(axis=-1).tolist() == [1, 4, 1]


@pytest.mark.parametrize(
    ("typical_p", "kept"), [(0.25, [1]), (0.26, [1, 0]), (0.75, [1, 0]), (0.76, [1, 0, 2]), (1.0, [0, 1, 2, 3])]
)
def test_typical_keeps_ids_near_the_mean_surprise_until_they_reach_a_share(typical_p: float, kept: list[int]) -> None:
    # surprises of 1, 2, 3 and 3 bits, on average 1.75: the second id is the nearest
    want = np.where(np.isin(np.arange(4), kept), np.exp(QUARTERS), 0.0)
    np.testing.assert_allclose(next_token_probabilities(QUARTERS, typical_p=typical_p), want / want.sum(), rtol=1e-12)


def test_typical_looks_at_what_the_filters_before_it_left() -> None:
    # 2/3 and 1/3 are left, on average 0.92 bits: now the first id is the nearest
    np.testing.assert_array_equal(next_token_probabilities(QUARTERS, top_k=2, typical_p=0.6), [1, 0, 0, 0])
    assert (next_token_probabilities(np.stack([QUARTERS, QUARTERS[::-1]]), typical_p=0.25) > 0).tolist() == [
        [False, True, False, False], [False, False, True, False],
    ]  # fmt: skip
