"""The reference's penalties: numbers by hand, off by default, refused out of range."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from conformkit.reference.errors import SizeError
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.penalties import NONE, Penalties, min_p_filtered, typical_filtered, without_repeats

IDS = torch.tensor([[1, 0, 0, 2, 2, 2]])
FEW = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()


def test_penalties_for_presence_and_frequency_count_new_ids() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5, -3.0]])
    found = Penalties(presence=0.5, frequency=1.0).applied(logits, IDS, 3, 1.0)
    assert found.tolist() == [[2.0, -1.0, -3.0, -3.0]]
    assert torch.equal(NONE.applied(logits, IDS, 3, 1.0), logits)


def test_n_grams_are_not_repeated() -> None:
    ids = torch.tensor([[0, 1, 2, 0, 1, 3, 0, 1]])
    found = without_repeats(torch.zeros(1, 4), ids, 3)
    assert found.tolist() == [[0.0, 0.0, -math.inf, -math.inf]]
    assert torch.equal(without_repeats(torch.zeros(1, 4), ids[:, :2], 3), torch.zeros(1, 4))


def kept(logits: torch.Tensor) -> list[int]:
    return logits[0].isfinite().nonzero()[:, 0].tolist()


def test_min_p_and_typical_p_keep_what_the_oracle_keeps() -> None:
    assert kept(min_p_filtered(FEW, 1.0, 0.6)) == [0, 1]
    assert kept(min_p_filtered(FEW, 3.0, 0.6)) == [0, 1, 2, 3]
    assert kept(typical_filtered(FEW, 1.0, 0.4)) == [1, 2]
    assert kept(typical_filtered(FEW, 1.0, 1.0)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [{"min_p": 1.5}, {"typical_p": 0.0}, {"repetition_penalty": 0.0}, {"presence_penalty": math.nan},
     {"frequency_penalty": math.inf}, {"no_repeat_ngram_size": 0}],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
def test_what_is_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    model = TinyTransformerLM(7, 12, 3, 1, 20, 8)
    with pytest.raises(SizeError, match=next(iter(wrong))):
        model.generate(IDS, 1, **wrong)


def test_with_a_cache_the_penalties_are_the_same() -> None:
    model = TinyTransformerLM(7, 12, 3, 1, 20, 16).eval()
    options = {"frequency_penalty": 0.5, "no_repeat_ngram_size": 2, "temperature": 0.0}
    one = model.generate(IDS, 6, use_cache=True, **options)
    assert torch.equal(one, model.generate(IDS, 6, **options))
    pairs = one.unfold(1, 2, 1)[0, IDS.shape[1] - 1 :].tolist()
    assert len({tuple(pair) for pair in pairs}) == len(pairs)
