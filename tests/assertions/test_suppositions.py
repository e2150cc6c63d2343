"""What usually goes wrong is told where it gives all numbers, and nowhere else."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure, check_close, gathering, related, supposing
from conformkit.conformance.assertions.suppositions import RIGHT, supposed
from conformkit.conformance.evidence.loss_slips import of_evaluation, of_loss
from conformkit.conformance.evidence.optimizer_slips import of_adam, of_clipping
from conformkit.conformance.evidence.schedule_slips import of_cosine, of_inverse_root
from conformkit.conformance.evidence.text_slips import of_pieces, of_score, of_text
from conformkit.spec.loss import cross_entropy
from conformkit.spec.optimization import adamw, clipped
from conformkit.spec.schedules import cosine_schedule, inverse_sqrt_schedule

RNG = np.random.default_rng(3)
WEIGHTS, GRADIENTS = RNG.normal(size=5), [RNG.normal(size=5) for _ in range(4)]
OPTIONS = {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.1}
LOGITS, TARGETS = RNG.normal(size=(3, 4, 7)), RNG.integers(0, 7, size=(3, 4))
TARGETS[0, 1:3] = 0
TABLE = RNG.normal(size=(40, 11))


def logits(ids):
    """Return logits (B, V) that depend on every id and its place."""
    return sum(np.roll(TABLE[ids[:, place]], place, axis=-1) for place in range(ids.shape[1]))


def told(slips, got, want, allowed=1e-9):
    found = supposed(np.asarray(got), np.asarray(want), allowed, slips)
    return None if found is None else found.names[0]


def greedy():
    """Return prompts and the greedy ids after them."""
    ids = prompts = np.arange(18).reshape(6, 3) % 11
    for _ in range(5):
        ids = np.concatenate([ids, logits(ids).argmax(axis=-1)[:, None]], axis=1)
    return prompts, ids[:, 3:]


PAIRS = [(RNG.integers(0, 7, size=(n, 4)), RNG.integers(0, 7, size=(n, 4))) for n in (3, 1)]
SMOOTHED = {"ignore_index": 0, "label_smoothing": 0.2}
EACH = [
    *((slips, right) for slips, right in [
        ([of_adam(WEIGHTS, GRADIENTS, OPTIONS)], adamw(WEIGHTS, GRADIENTS, **OPTIONS)),
        (of_clipping({"a": WEIGHTS, "b": GRADIENTS[0]}, 0.3)[:1], clipped({"a": WEIGHTS, "b": GRADIENTS[0]}, 0.3)["a"]),
        ([of_loss(LOGITS, TARGETS, **SMOOTHED)], cross_entropy(LOGITS, TARGETS, **SMOOTHED)),
        (of_cosine(90, peak=0.5, floor=0.1, warmup=40, total=240)[:1], cosine_schedule(90, 0.5, 0.1, 40, 240)),
        (of_inverse_root(7, 64, 100)[:1], inverse_sqrt_schedule(7, 64, 100)),
        ([of_score(lambda text: -0.3 * sum(text) ** 1.3, [3, 4, 5])], [-0.3 * 12**1.3]),
    ])
]  # fmt: skip


@pytest.mark.parametrize(("slips", "right"), EACH, ids=["adam", "clip", "loss", "cosine", "inverse-root", "score"])
def test_no_two_slips_give_the_same_numbers_and_none_the_right_ones(slips, right):
    """Would break if a slip were told in place of another one, or if one changed nothing."""
    with np.errstate(all="ignore"):
        every = {words: np.asarray(work_out(), np.float64) for words, work_out in slips[0].items()}
    made = {words: array for words, array in every.items() if np.isfinite(array).all()}
    alike = [words for words, array in made.items() if np.allclose(array, right, rtol=1e-6)]
    found = {words: told(slips, array, right) for words, array in made.items() if words not in alike}
    doubled = {words: other for words, other in found.items() if other != words}
    assert len(alike) <= len(made) // 3, alike  # a run without decay, or of one parameter, shows some of them only
    assert len(doubled) <= len(made) // 3, doubled
    assert told(slips, right, right) is None
    assert told(slips, np.asarray(right) * 1.0123, right) is None


def test_a_text_that_forgets_is_told_apart_from_one_that_repeats_the_prompt():
    prompts, text = greedy()
    slips = of_text(logits, prompts, text, 40)
    newest = prompts
    for _ in range(5):
        newest = np.concatenate([newest, logits(newest[:, -1:]).argmax(axis=-1)[:, None]], axis=1)
    assert told([slips], newest[:, 3:], text) == "if only the newest id is read"
    assert told([slips], newest[2:, 3:], text[2:]) == "if only the newest id is read"  # some rows of it
    assert told([slips], np.roll(text, 1, axis=0), text) is None


def test_a_few_ids_tell_nothing():
    """Would break if one wrong id were explained: half of such explanations were wrong ones."""
    want = np.array([[1, 2, 3]])
    assert told([{"if it is so": partial(np.asarray, [[1, 5, 3]])}], np.array([[1, 5, 3]]), want) is None


def test_pieces_without_what_is_kept_are_told():
    ids = RNG.integers(0, 11, size=(2, 6))

    def read(part, positions=None):
        places = np.arange(part.shape[1])[None] if positions is None else positions
        return np.cumsum(TABLE[part] * (1.0 + places[..., None]), axis=1)

    pieces = [ids[:, :3], ids[:, 3:5], ids[:, 5:]]
    slips, right = of_pieces(read, ids, pieces), read(ids)
    wrong = {words: work_out() for words, work_out in slips.items()}
    assert {told([slips], array, right) for array in wrong.values()} == set(wrong)


def test_rows_of_what_is_right_are_found_among_several():
    right = RNG.normal(size=(3, 4))
    group = {RIGHT: partial(np.asarray, right), "if doubled and shifted": partial(np.asarray, 2 * right + 1)}
    assert told([group], 2 * right[1] + 1, right[1]) == "if doubled and shifted"
    assert told([group], 2 * right[[2, 0]] + 1, right[[2, 0]]) == "if doubled and shifted"
    assert told([group], 2 * right[1] + 1, right[0]) is None


def test_a_mean_of_means_is_told_for_an_evaluation():
    slips = of_evaluation(lambda x: TABLE[x][..., :7], PAIRS)
    each = [cross_entropy(TABLE[x][..., :7], y) for x, y in PAIRS]
    want = (3 * each[0] + each[1]) / 4
    assert told([slips], np.mean(each), want) == "if batches have means of their own, and those have one"


def test_what_fails_while_it_is_worked_out_costs_no_verdict():
    """Would break if an error in a supposition took the place of the failure that it explains."""
    slips = {"if it raises": partial(int, "no number"), "with 3 added": partial(np.asarray, WEIGHTS + 3)}
    with gathering():
        supposing(slips)
        with pytest.raises(ClauseFailure) as failed:
            check_close("the weights", WEIGHTS + 3, WEIGHTS, 1e-9)
        assert str(related(failed.value).relation) == "it is what comes out with 3 added"
