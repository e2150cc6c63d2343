"""Samples are held to their probabilities and texts to their logits: right ones pass, and a little less is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.evidence import (
    averages,
    copying,
    generation_at_sizes,
    long_texts,
    min_p_and_typical_p,
    rotation_angles,
    sampled_text,
)
from conformkit.conformance.evidence.bias_by_distance import check_bias
from conformkit.conformance.evidence.conversations import answered, conversation, mean_of_answers
from conformkit.conformance.evidence.sampled_ranks import check_ranks, draws_for, filters
from conformkit.spec.generation import next_token_probabilities
from conformkit.spec.loss import IGNORED
from conformkit.spec.relative_positions import relative_bias
from conformkit.spec.variants import CANONICAL

RANDOM = np.random.default_rng(0)


def drawn(logits: np.ndarray, count: int, **options: Any) -> np.ndarray:
    return RANDOM.choice(len(logits), count, p=next_token_probabilities(logits, **options))


LOGITS = 0.5 * RANDOM.normal(size=60)
FEW = {"top_k": 20}


def test_no_more_prompts_are_written_together_than_limits_allow(monkeypatch):
    """Would break if 1,500 rows were given to code whose cache has room for 256."""
    together = []

    def written(_instance, prompts, count, **_options):
        together.append(len(prompts))
        return np.append(prompts, drawn(LOGITS, len(prompts))[:, None], axis=1)

    monkeypatch.setattr(generation_at_sizes, "read_logits", lambda *_: LOGITS[None])
    monkeypatch.setattr(sampled_text, "written", written)
    bound = SimpleNamespace(limits=SizeLimits({"batch": Range(max=256)}))
    subject = SimpleNamespace(bound=bound, as_asked=SimpleNamespace(tokens=lambda wanted: wanted))
    instance: Any = SimpleNamespace(subject=subject, sizes={"vocab_size": len(LOGITS)})
    generation_at_sizes._check_ranks(instance, Draw(0, "ranks"), {})
    assert sum(together) == draws_for(len(LOGITS)) == 1500
    assert max(together) <= 256


@pytest.mark.parametrize("options", [{}, FEW, {"top_p": 0.9}], ids=str)
def test_ids_sampled_by_their_probabilities_pass(options: dict[str, Any]) -> None:
    check_ranks(LOGITS, drawn(LOGITS, 1500, **options), options)


@pytest.mark.parametrize(
    ("ids", "options", "words"),
    [
        (drawn(LOGITS, 1500), FEW, "rank .* expected the 20 most probable"),
        (drawn(3 * LOGITS, 1500), {}, "no filter"),
        (drawn(0 * LOGITS, 1500), {}, "no filter"),
        (drawn(LOGITS, 1500, top_k=14), FEW, "top_k = 20"),
        (drawn(LOGITS, 1500, top_k=50), {}, "1.000 of the sampled ids are among the"),
    ],
    ids=["no-filter", "too-sharp", "too-even", "fewer", "a-hidden-filter"],
)
def test_ids_sampled_by_others_fail(ids: np.ndarray, options: dict[str, Any], words: str) -> None:
    """Would break if more was allowed than chance gives, or if a filter that nobody asked for stayed unseen."""
    with pytest.raises(ClauseFailure, match=words):
        check_ranks(LOGITS, ids, options)


def test_one_id_more_than_is_kept_may_be_rounding() -> None:
    """Would break if right code failed where two logits are equal but for rounding."""
    check_ranks(np.zeros(21), np.append(RANDOM.integers(0, 20, 1499), 20), FEW)


def test_as_many_ids_are_drawn_as_are_worth_it() -> None:
    assert [draws_for(size) for size in (10, 300, 900, 1800, 10**6)] == [1500, 1500, 500, 250, 250]


@pytest.mark.parametrize(
    ("size", "top_k", "top_p", "attempt", "wanted"),
    [
        (50, None, False, 0, [{}]), (50, None, True, 0, [{}, {"top_p": 0.9}]),
        (50, None, True, 1, [{}, {"top_p": 0.99}]), (50, 20, False, 0, [{"top_k": 50}, {"top_k": 20}]),
        (22, 20, True, 0, [{"top_k": 20}, {"top_k": 20, "top_p": 0.9}]),
        (23, 20, False, 0, [{"top_k": 23}, {"top_k": 20}]),
    ],
)  # fmt: skip
def test_filters_are_compared_with_none(size: int, top_k: Any, top_p: bool, attempt: int, wanted: Any) -> None:
    assert filters(size, top_k, top_p=top_p, attempt=attempt) == wanted


PROBABILITIES = np.array([0.05, 0.4, 0.1, 0.25, 0.2])


@pytest.mark.parametrize(("count", "between"), [(1, (0.25, 0.4)), (2, (0.2, 0.25)), (4, (0.05, 0.1))])
def test_a_share_lies_between_the_last_that_is_kept_and_the_next(count: int, between: tuple[float, float]) -> None:
    share = min_p_and_typical_p.halfway_share(PROBABILITIES, count)
    low, high = (bound / 0.4 for bound in between)
    assert share == pytest.approx((low * high) ** 0.5)


@pytest.mark.parametrize("seed", range(4))
def test_a_min_p_keeps_clear_of_each_id_and_depends_on_each_row_s_best(seed: int) -> None:
    """Would break if rounding could decide, or if the maximum over the whole batch gave the same ids."""
    logits = np.random.default_rng(seed).normal(size=(3, 12)) * np.array([[0.5], [1.0], [2.0]])
    share = min_p_and_typical_p.shares_of_best(logits)
    probabilities = next_token_probabilities(logits)
    own = probabilities / probabilities.max(axis=-1, keepdims=True)
    assert 0.05 <= share <= 0.9
    assert np.abs(np.log(own / share)).min() > 0.001
    kept = (own >= share).sum(-1)
    assert (kept != (probabilities >= share * probabilities.max()).sum(-1)).any()


def test_typical_ids_are_those_nearest_to_the_entropy_and_their_p_reaches_no_other() -> None:
    ids, p = min_p_and_typical_p.typical(PROBABILITIES, 2)
    entropy = -(PROBABILITIES * np.log(PROBABILITIES)).sum()
    near = np.argsort(np.abs(-np.log(PROBABILITIES) - entropy))
    assert ids == near[:2].tolist()
    first, both = PROBABILITIES[near[:1]].sum(), PROBABILITIES[near[:2]].sum()
    assert p == pytest.approx((first + both) / 2)


def test_prompts_score_as_their_typical_ids_stand_apart() -> None:
    """Would break if logits whose typical ids are as typical as the next one's counted as telling."""
    apart = np.log([[0.34, 0.2, 0.2, 0.2, 0.03, 0.03]])
    even = np.zeros((1, 6))
    assert min_p_and_typical_p.atypical(apart, count=3)[0] == pytest.approx(3.0)
    assert min_p_and_typical_p.atypical(even, count=3)[0] == pytest.approx(1.0)
    assert min_p_and_typical_p.unequal(even, count=3)[0] == pytest.approx(0.0, abs=1e-9)
    level = np.array([0.5, 0.25, 0.25])  # all as far from the entropy
    lacks_best = 0 not in min_p_and_typical_p.typical(level, 2)[0]
    assert min_p_and_typical_p.atypical(np.log(level[None]), count=2)[0] == pytest.approx(1.0 + lacks_best)
    steep = np.log([[0.62, 0.16, 0.14, 0.04, 0.04]])
    order = np.argsort(np.abs(-np.log(np.exp(steep[0])) - -(np.exp(steep[0]) * steep[0]).sum()))
    kept = np.exp(steep[0])[order][:2]
    want = 1.0 + min(np.log(kept.max() / kept.min()), 1.5) / 0.75
    assert min_p_and_typical_p.unequal(steep, count=2)[0] == pytest.approx(want, abs=0.2)


@pytest.mark.parametrize(
    ("factor", "words"), [(0.9, "; all are about 0.90 times what is wanted"), (2.0, "2.00"), (None, "")]
)
def test_means_that_are_off_by_one_factor_say_it(factor: float | None, words: str) -> None:
    want = np.array([[1.0, -2.0], [3.0, 0.5]])
    means = want + np.array([[1, -1], [1, 1]]) if factor is None else factor * want
    assert words in averages._factor(means, want, np.full((2, 2), 1e-3))
    assert bool(averages._factor(means, want, np.full((2, 2), 1e-3))) == bool(words)


SUBJECT: Any = SimpleNamespace(no_finer=lambda margin: margin, tolerance=lambda: 1e-6)
SCORES = np.array([[[0.0, 1.0, 0.5], [2.0, 0.0, 1.0]], [[0.0, 0.1, 3.0], [1.0, 0.998, 0.0]]])


@pytest.mark.parametrize(
    ("new", "pad", "ended", "wrong"),
    [
        ([[1, 0], [2, 0]], None, None, ""), ([[1, 0], [2, 1]], None, None, ""),
        ([[1, 2], [2, 0]], None, None, "id 1 of row 0 is 2, expected 0"),
        ([[2, 2], [2, 0]], None, None, "id 0 of row 0 is 2, expected 1"),
        ([[1, 2], [0, 0]], None, None, "id 0 of row 1 is 0, expected 2"),
        ([[1, 2], [2, 0]], 1, None, ""), ([[2, 2], [2, 0]], 1, None, "id 0 of row 0"),
        ([[1, 2], [2, 0]], None, [[False, True], [False, False]], ""),
    ],
)  # fmt: skip
def test_greedy_text_is_the_most_probable_up_to_rounding(new: Any, pad: Any, ended: Any, wrong: str) -> None:
    """Would break if a wrong id passed, if rounding failed, or if what follows a pad or an end were judged."""
    done = None if ended is None else np.array(ended)

    def judge() -> None:
        long_texts.check_greedy("the text", SUBJECT, SCORES, np.array(new), pad, ended=done)

    if not wrong:
        return judge()
    with pytest.raises(ClauseFailure, match=wrong):
        judge()
    return None


def test_texts_say_whether_they_change_and_where_their_ids_are_scattered() -> None:
    text = np.array([[1, 2, 3], [1, 3, 3], [2, 2, 1], [3, 1, 1]])
    assert long_texts.changes(text)
    assert not long_texts.changes(text[1:])
    assert long_texts._most_scattered(text, set()) in {1, 3}
    assert long_texts._most_scattered(text, {1, 3}) == 2
    assert long_texts._most_scattered(text, {1, 2, 3}) is None
    logits = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]]))
    assert long_texts.total_log_probability(logits, np.array([[0, 1]])) == pytest.approx(np.log(0.375))


def test_answers_are_parts_of_texts_and_predicted_one_place_before() -> None:
    text = conversation(Draw(0, "texts"))
    assert (text.ids[:, 1:] != text.ids[:, :-1]).all()
    assert text.ids.max() < 15
    assert text.mask.sum(axis=1).tolist() == [4, 3, 4, 9]
    assert (text.labels[text.mask] == text.ids[text.mask]).all()
    assert (text.labels[~text.mask] == IGNORED).all()
    assert (text.predicts[:, :-1] == text.mask[:, 1:]).all()
    assert not text.predicts[:, -1].any()
    for places in (0, 1, 2):
        assert (text.sure(places).logits.argmax(-1)[:, :7] == np.roll(text.ids, -places, 1)[:, :7]).all()
    whole, rows, all_rows = mean_of_answers(text)
    assert rows == all_rows
    text.mask[1] = False
    assert mean_of_answers(text)[2] == pytest.approx(mean_of_answers(text)[1] * 3 / 4)
    assert whole > 0


@pytest.mark.parametrize(("tokens", "first"), [(2, 1), (7, 3), (8, 4)])
def test_the_second_half_of_a_text_is_its_answer(tokens: int, first: int) -> None:
    sizes: Any = {"batch": 3, "tokens": tokens, "vocab_size": 11}
    text = answered(Draw(0, "texts"), sizes)
    assert text.mask.tolist() == [[place >= first for place in range(tokens)]] * 3
    assert text.ids[-1, -1] == 10
    assert text.logits.shape == (3, tokens, 11)


def test_rates_rise_and_fall_and_right_targets_are_counted() -> None:
    """Would break if padding counted as a hit, or if training went on at its first rate."""
    want = np.array([[1, 2, IGNORED], [3, IGNORED, IGNORED]])
    assert copying._share(np.array([[1, 0, IGNORED], [3, 0, 0]]), want) == pytest.approx(2 / 3)
    rates = np.concatenate([copying._rates(done) for done in range(0, copying.STEPS, copying.CHUNK)])
    assert len(rates) == copying.STEPS
    top = int(rates.argmax())
    assert 0 < top < 200
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert rates[-1] == pytest.approx(6e-3 * 0.2, rel=0.01)


@pytest.mark.parametrize(("angle", "size"), [(1.0, 9.0), (0.3, 2.0), (0.004, 5.0), (0.0, 1.0)])
def test_angles_are_read_off_scores(angle: float, size: float) -> None:
    steps = np.arange(12)
    turn = rotation_angles.Turn(size * np.sin(steps * angle), size * (np.cos(steps * angle) - 1))
    assert turn.angle == pytest.approx(angle, abs=1e-9)
    assert turn.size == pytest.approx(size if angle else 0.0)


def test_scores_by_distance_are_means_over_what_is_seen() -> None:
    falls = np.array([[0.0, np.nan, np.nan], [1.0, 0.0, np.nan], [np.nan, 3.0, 0.0]])
    assert rotation_angles._by_distance(falls).tolist() == [0.0, 2.0]
    with pytest.raises(NotApplicable):
        rotation_angles._by_distance(np.where(np.eye(3, dtype=bool), 0.0, np.nan))
    wide = rotation_angles._as_wide(np.array([3.0, 4.0]), 8)
    assert (wide @ wide, wide[0] / wide[1]) == pytest.approx((5.0**2 * 8 / 2 * (2 / 8) ** 0.5, 0.75))
    assert rotation_angles._as_wide(np.arange(4.0), 2).tolist() == [0.0, 1.0]


class Biased:
    """Attention whose weights fall by a table, in each head; `wrong` is added to one score."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.wrong, self.sizes = wrong, {"num_heads": 2}
        self.subject = SimpleNamespace(variant=CANONICAL, tolerance=lambda: 1e-6)

    def shown(self, table: np.ndarray, head: int) -> np.ndarray:
        scores = relative_bias(table, 9, self.subject.variant, causal=True)[head].copy()
        scores[8, 1] += self.wrong * head
        weights = np.exp(scores) * np.tri(9)
        return np.asarray(weights / weights.sum(-1, keepdims=True))


@pytest.mark.parametrize(("wrong", "least"), [(0.0, 0), (0.01, 8)])
def test_weights_that_fall_as_the_table_does_pass(wrong: float, least: int) -> None:
    table, one = RANDOM.normal(size=(32, 2)), Biased(wrong)
    check_bias(one, table, one.shown, 9, least, one_sided=True)  # type: ignore[arg-type]


def test_one_weight_that_falls_otherwise_fails() -> None:
    """Would break if a head, or a distance, were left out."""
    table, one = RANDOM.normal(size=(32, 2)), Biased(0.01)
    with pytest.raises(ClauseFailure, match="scores of 45 pairs"):
        check_bias(one, table, one.shown, 9, 0, one_sided=True)  # type: ignore[arg-type]


RANKED = np.array([[0.3, 0.05, 0.1, 0.15, 0.4], [0.2, 0.2, 0.2, 0.2, 0.2], [0.9, 0.04, 0.03, 0.02, 0.01]])


def test_logits_are_scored_by_what_a_clause_needs() -> None:
    """Would break if a prompt were chosen after which another mistake, or none, shows."""
    logits = np.log(RANKED)
    assert sampled_text.even(logits) == pytest.approx([-0.4, -0.2, -0.9])
    gaps = np.abs(np.log([0.4 / 0.3, 1.0, 0.9 / 0.04]) - 0.25)
    assert sampled_text.close(logits) == pytest.approx(-gaps)
    assert sampled_text.close(logits, gap=0.0)[1] == pytest.approx(0.0)
    spread = np.log([0.4 / 0.05, 1.0, 90.0])
    assert sampled_text._apart(logits)[[0, 2]] == pytest.approx(
        [np.log(0.4 / 0.3) / spread[0], np.log(4 / 3) / spread[2]]
    )


@pytest.mark.parametrize(
    ("probabilities", "score"),
    [
        ([0.02, 0.05, 0.08, 0.12, 0.2, 0.53], 2.0 + np.log(0.05 / 0.02)),
        ([0.02, 0.05, 0.08, 0.12, 0.53, 0.2], 2.0 + np.log(0.05 / 0.02)),
        ([0.53, 0.05, 0.08, 0.12, 0.2, 0.02], 1.0 + np.log(0.05 / 0.02)),
        ([0.02, 0.04, 0.06, 0.09, 0.15, 0.64], 1.0 + np.log(0.15 / 0.09)),
        ([0.005, 0.02, 0.055, 0.12, 0.25, 0.55], 1.0 + np.log(0.55 / 0.25)),
        ([0.1, 0.1, 0.1, 0.1, 0.3, 0.3], 2.0),
    ],
)
def test_well_separated_probabilities_are_apart_common_and_late(probabilities: list[float], score: float) -> None:
    found = sampled_text.separated(np.log([probabilities]))[0]
    ranked = -np.sort(-np.array(probabilities))
    gap = min(1.0, np.log(ranked[:-1] / ranked[1:]).min())
    assert found - gap == pytest.approx(np.floor(score + 1e-9) if score < 2 else 2.0)


@pytest.mark.parametrize(("count", "p"), [(1, 0.2), (2, 0.55), (3, 0.775), (5, 0.975)])
def test_a_p_lies_halfway_between_two_sums(count: int, p: float) -> None:
    assert sampled_text.halfway(RANKED[0], count) == pytest.approx(p)


def test_many_ids_are_those_that_reach_a_share_but_never_all() -> None:
    assert [sampled_text.many(row) for row in RANKED] == [4, 4, 2]
    assert sampled_text.many(RANKED[0], 0.69) == 2
    assert sampled_text.many(RANKED[0], 0.71) == 3


def test_a_p_of_several_rows_keeps_clear_of_each_sum_and_tells_them_apart() -> None:
    p = sampled_text.p_between(np.log(RANKED))
    together = np.cumsum(-np.sort(-RANKED, axis=-1), axis=-1)
    assert np.abs(together - p).min() > 1e-3
    assert np.ptp((together < p).sum(-1)) == max(
        np.ptp((together < one).sum(-1)) for one in np.linspace(0.3, 0.95, 131) if np.abs(together - one).min() > 1e-3
    )


@pytest.mark.parametrize(
    ("drawn", "wanted", "words"),
    [
        ([4] * 60 + [0] * 40, [4, 0], ""), ([4] * 60, [4, 0], "id 0 was never sampled in 60 draws"),
        ([4] * 60 + [0] * 40 + [2], [4, 0], "id 2 was sampled 1 times, expected never"),
        ([4] * 3, [4, 0], ""), ([4] * 60 + [0] * 40, [4, 0, 1], ""),
    ],
)  # fmt: skip
def test_exactly_the_wanted_ids_are_drawn_but_rare_ones_may_be_missing(drawn: Any, wanted: Any, words: str) -> None:
    if not words:
        return sampled_text.check_set("ids", np.array(drawn), wanted, RANKED[0])
    with pytest.raises(ClauseFailure, match=words):
        sampled_text.check_set("ids", np.array(drawn), wanted, RANKED[0])
    return None
