"""The oracle of spec/penalties.md, and the filters that it adds, against numbers by hand."""

from __future__ import annotations

import numpy as np

from conformkit.spec.generation import next_token_probabilities
from conformkit.spec.penalties import Penalties, repeating
from conformkit.spec.variants import CANONICAL

LOGITS = np.array([[2.0, -1.0, 0.5, -3.0]])
TEXT = np.array([[1, 0, 0, 2, 2, 2]])
"""A prompt of 3 ids, and 3 new ones."""
FEW = np.log([[0.4, 0.3, 0.2, 0.1]])


def test_a_repetition_penalty_lowers_positive_and_negative_logits() -> None:
    asked = Penalties(repetition_penalty=2.0)
    np.testing.assert_array_equal(asked.applied(LOGITS, TEXT, 3), [[1.0, -2.0, 0.25, -3.0]])
    new = asked.applied(LOGITS, TEXT, 3, CANONICAL.but(repetition_counts="new"))
    np.testing.assert_array_equal(new, [[2.0, -1.0, 0.25, -3.0]])


def test_presence_is_subtracted_once_and_frequency_by_the_count() -> None:
    asked = Penalties(presence_penalty=0.5, frequency_penalty=1.0)
    np.testing.assert_array_equal(asked.applied(LOGITS, TEXT, 3), [[2.0, -1.0, -3.0, -3.0]])
    every = asked.applied(LOGITS, TEXT, 3, CANONICAL.but(penalty_counts="all"))
    np.testing.assert_array_equal(every, [[-0.5, -2.5, -3.0, -3.0]])


def test_an_id_that_followed_the_same_ids_before_is_excluded() -> None:
    text = np.array([[0, 1, 2, 0, 1, 3, 0, 1], [0, 0, 0, 0, 0, 0, 0, 3]])
    np.testing.assert_array_equal(np.flatnonzero(repeating(text, 4, 3)[0]), [2, 3])
    np.testing.assert_array_equal(np.flatnonzero(repeating(text, 4, 2)[0]), [2, 3])
    np.testing.assert_array_equal(np.flatnonzero(repeating(text, 4, 1)[0]), [0, 1, 2, 3])
    assert not repeating(text, 4, 3)[1].any()
    assert not repeating(text[:, :1], 4, 3).any()
    found = Penalties(no_repeat_ngram_size=3).applied(np.zeros((2, 4)), text, 2)
    np.testing.assert_array_equal(found[0], [0.0, 0.0, -np.inf, -np.inf])


def test_min_p_keeps_a_share_of_the_highest_probability() -> None:
    np.testing.assert_allclose(next_token_probabilities(FEW, min_p=0.45), [[4 / 9, 3 / 9, 2 / 9, 0.0]])
    np.testing.assert_allclose(next_token_probabilities(FEW, min_p=0.6), [[4 / 7, 3 / 7, 0.0, 0.0]])
    hot = next_token_probabilities(FEW, min_p=0.6, temperature=3.0)
    assert (hot > 0).sum() == 4
    last = next_token_probabilities(FEW, min_p=0.6, temperature=3.0, temperature_last=True)
    assert (last > 0).sum() == 2


def test_typical_p_keeps_ids_near_the_entropy() -> None:
    """H is 1.28 here; -ln p is 0.92, 1.20, 1.61 and 2.30: the second is nearest, then the third, then the first."""
    np.testing.assert_allclose(next_token_probabilities(FEW, typical_p=0.2), [[0.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(next_token_probabilities(FEW, typical_p=0.4), [[0.0, 0.6, 0.4, 0.0]])
    np.testing.assert_allclose(next_token_probabilities(FEW, typical_p=0.8), [[4 / 9, 3 / 9, 2 / 9, 0.0]])
