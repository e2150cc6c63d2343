"""The bounds of sampling clauses: they hold exactly, and the intended mistakes are detected."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.statistics import (
    FALSE_ALARMS,
    check_frequencies,
    check_independent,
    divergence,
    equal_pairs,
    hits_needed,
    surprises,
    threshold,
)

LAW = np.array([0.548648, 0.201836, 0.122420, 0.082060, 0.045036])
LAW = LAW / LAW.sum()


def binomial(draws: int, probability: float) -> list[float]:
    return [
        math.comb(draws, hits) * probability**hits * (1.0 - probability) ** (draws - hits) for hits in range(draws + 1)
    ]


@pytest.mark.parametrize("draws", [1, 7, 60])
@pytest.mark.parametrize("probability", [0.003, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("limit", [0.3, 2.0, 6.0])
def test_the_bound_holds_for_every_binomial(draws: int, probability: float, limit: float) -> None:
    chances = binomial(draws, probability)
    beyond = sum(p for hits, p in enumerate(chances) if divergence(hits, draws, probability) > limit)
    assert beyond <= 2.0 * math.exp(-limit)


def test_the_divergence_is_zero_where_the_share_is_the_probability() -> None:
    assert divergence(25, 100, 0.25) == pytest.approx(0.0, abs=1e-12)
    assert divergence(0, 50, 0.0) == 0.0
    assert divergence(50, 50, 1.0) == 0.0


def test_the_divergence_of_a_hand_worked_case() -> None:
    # 3 of 4, one half is expected: 4 (0.75 ln 1.5 + 0.25 ln 0.5)
    assert divergence(3, 4, 0.5) == pytest.approx(4 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5)), rel=1e-12)


def test_what_cannot_happen_is_infinitely_surprising() -> None:
    assert divergence(1, 10_000, 0.0) == math.inf
    assert divergence(9_999, 10_000, 1.0) == math.inf


def test_the_threshold_shares_the_false_alarms_among_the_events() -> None:
    assert 2 * 9 * math.exp(-threshold(9)) == pytest.approx(FALSE_ALARMS)
    assert threshold(90) > threshold(9)


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.999])
def test_after_the_hits_needed_an_event_has_come(probability: float) -> None:
    draws = hits_needed(probability)
    assert (1.0 - probability) ** draws <= FALSE_ALARMS < (1.0 - probability) ** (draws - 1)


def test_what_is_certain_comes_at_once() -> None:
    assert hits_needed(1.0) == 1


def test_no_sample_of_the_law_itself_is_called_wrong() -> None:
    random = np.random.default_rng(3)
    for counts in random.multinomial(2000, LAW, size=2000):
        assert not surprises(counts, LAW)


def test_the_rate_of_false_alarms_is_kept() -> None:
    """At a rate of 1e-2 true samples may be flagged, but not more often than promised."""
    random = np.random.default_rng(4)
    limit = threshold(2 * len(LAW) - 1, 1e-2)
    flagged = sum(
        any(divergence(int(c), 500, float(p)) > limit for c, p in zip(counts, LAW, strict=True))
        for counts in random.multinomial(500, LAW, size=4000)
    )
    assert flagged <= 40


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([0.823566, 0.111458, 0.041003, 0.018424, 0.005549], id="temperature-one-half"),
        pytest.param([0.363353, 0.220385, 0.171636, 0.140524, 0.104102], id="temperature-two"),
        pytest.param([0.6285, 0.2312, 0.1403, 0.0, 0.0], id="three-of-five"),
        pytest.param([0.201836, 0.548648, 0.122420, 0.082060, 0.045036], id="two-ids-exchanged"),
        pytest.param([0.28, 0.2, 0.18, 0.17, 0.17], id="softmax-twice"),
    ],
)
def test_samples_of_another_law_are_called_wrong(wrong: list[float]) -> None:
    random = np.random.default_rng(5)
    other = np.array(wrong) / sum(wrong)
    for counts in random.multinomial(2000, other, size=50):
        assert surprises(counts, LAW)


def test_the_worst_surprise_comes_first() -> None:
    found = surprises(np.array([0, 0, 0, 0, 2000]), LAW)
    assert found[0].hits == 0 or found[0].event == "id 4"
    assert str(found[0]).endswith(", not about 1910")


def test_frequencies_that_fit_pass_and_others_are_shown() -> None:
    random = np.random.default_rng(6)
    check_frequencies("ids", random.choice(5, 2000, p=LAW), LAW)
    with pytest.raises(ClauseFailure, match="draws") as failure:
        check_frequencies("ids", random.choice(5, 2000), LAW)
    assert any("expected: 0.549 0.202" in line for line in failure.value.details)


@pytest.mark.parametrize("stray", [-1, 5])
def test_an_id_outside_the_vocabulary_is_a_failure(stray: int) -> None:
    with pytest.raises(ClauseFailure, match="not in 0 … 4"):
        check_frequencies("ids", np.array([0, 1, stray]), LAW)


def test_the_expected_number_of_equal_pairs_is_the_mean_over_all_orders() -> None:
    ids = [0, 0, 0, 1, 1, 2]
    found = [sum(o[i] == o[i + 3] for i in range(3)) for o in itertools.permutations(ids)]
    _, expected, _ = equal_pairs(np.array(ids[:3]), np.array(ids[3:]))
    assert expected == pytest.approx(sum(found) / len(found), rel=1e-12)


def test_the_bound_on_equal_pairs_holds_over_all_orders() -> None:
    ids = [0, 0, 0, 0, 1, 1, 2, 3]
    found = np.array([sum(o[i] == o[i + 4] for i in range(4)) for o in itertools.permutations(ids)])
    for far in (0.5, 1.0, 2.0):
        tail = float((np.abs(found - found.mean()) > far).mean())
        assert tail <= 2.0 * math.exp(-(far**2) / (2 * len(ids)))


def test_independent_rows_pass_whatever_their_law() -> None:
    random = np.random.default_rng(7)
    for law in (LAW, np.full(5, 0.2), np.array([0.96, 0.01, 0.01, 0.01, 0.01])):
        for _ in range(100):
            drawn = random.choice(5, 2000, p=law)
            check_independent("rows", drawn[::2], drawn[1::2])


def test_copied_rows_are_a_failure() -> None:
    drawn = np.random.default_rng(8).choice(19, 1000)
    with pytest.raises(ClauseFailure, match="equal 1000 times in 1000"):
        check_independent("rows", drawn, drawn)


@pytest.mark.parametrize(("factor", "said"), [(0.25, "by about 0.2"), (2.0, "by about 2"), (0.0, "equally probable")])
def test_a_factor_of_the_logits_is_seen_in_the_draws(factor: float, said: str) -> None:
    """Would break if a temperature that is multiplied were told by nothing but counts of single ids."""
    scaled = LAW**factor / (LAW**factor).sum()
    drawn = np.random.default_rng(3).choice(len(LAW), 4000, p=scaled)
    with pytest.raises(ClauseFailure) as caught:
        check_frequencies("ids", drawn, LAW)
    assert any(note.startswith("as if:") and said in note for note in caught.value.finding.notes)


def test_draws_that_no_factor_explains_are_said_to_be_like_nothing() -> None:
    """Would break if every wrong distribution were called one of another temperature."""
    drawn = np.random.default_rng(3).choice(len(LAW), 4000, p=LAW[::-1])
    with pytest.raises(ClauseFailure) as caught:
        check_frequencies("ids", drawn, LAW)
    assert not any(note.startswith("as if:") for note in caught.value.finding.notes)
