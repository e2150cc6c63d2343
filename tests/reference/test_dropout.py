"""Dropout on attention weights and on embeddings: off by default, at the rate that was set, in training only."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference import CrossAttention, MultiHeadAttention, TinyTransformerLM, Transformer
from conformkit.reference.dropout import attention_with_dropout, place_dropout
from conformkit.reference.errors import SizeError
from conformkit.reference.training.config import Speed
from conformkit.reference.training.speed import Fast


def test_weights_are_dropped_at_their_rate_and_the_others_scaled() -> None:
    torch.manual_seed(0)
    q = torch.zeros(200, 5, 4)  # equal scores: each weight is 1/5
    weights = attention_with_dropout(q, q, torch.eye(5).expand(200, 5, 5), None, 0.3)
    kept = weights != 0
    assert weights[kept].unique().tolist() == pytest.approx([0.2 / 0.7])
    assert kept.double().mean().item() == pytest.approx(0.7, abs=0.03)  # of 5,000 draws, 4.6 standard deviations
    mask = torch.ones(5, 5).tril().bool()
    hidden = attention_with_dropout(q, q, torch.eye(5).expand(200, 5, 5), mask, 0.3)
    assert torch.equal(hidden.triu(1), torch.zeros_like(hidden))


def models() -> list[tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]:
    torch.manual_seed(1)
    x = torch.randn(2, 6, 8)
    ids = torch.randint(1, 11, (2, 6))
    return [
        (MultiHeadAttention(8, 2), (x,)), (CrossAttention(8, 2), (x, x, x)),
        (TinyTransformerLM(11, 8, 2, 2, 12, 6), (ids,)),
        (Transformer(11, 11, 8, 2, 1, 1, 12, 6), (ids, ids)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(4), ids=["self", "cross", "language-model", "encoder-decoder"])
@pytest.mark.parametrize("place", ["attention", "embeddings"])
def test_it_acts_in_training_only_and_not_unless_it_is_set(number: int, place: str) -> None:
    model, given = models()[number]
    with torch.no_grad():
        before = model.train()(*given)
        assert torch.equal(model(*given), before)
        place_dropout(model, **{place: 0.5})
        assert torch.equal(model.eval()(*given), before)
        changed = not torch.equal(model.train()(*given), before)
    assert changed == (place == "attention" or number >= 2)


@pytest.mark.parametrize("place", ["attention", "embeddings"])
def test_the_fused_model_drops_too(place: str) -> None:
    torch.manual_seed(2)
    model = TinyTransformerLM(11, 8, 2, 1, 12, 6)
    place_dropout(model, **{place: 0.5})
    fast, ids = Fast(model, Speed()), torch.randint(11, (2, 6))
    with torch.no_grad():
        assert not torch.equal(fast.train()(ids), fast(ids))
        torch.testing.assert_close(fast.eval()(ids), model.eval()(ids))


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(SizeError, match=r"dropout is 1\.5, expected between 0 and 1"):
        place_dropout(models()[2][0], attention=1.5)
