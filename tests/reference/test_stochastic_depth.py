"""Layers are left out of some rows in training alone, later ones more often, and the mean of pre-norm layers stays."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference import TinyTransformerLM, Transformer
from conformkit.reference.encoder.model import BertModel
from conformkit.reference.errors import SizeError
from conformkit.reference.stochastic_depth import place_stochastic_depth
from conformkit.reference.training.config import Speed
from conformkit.reference.training.speed import Fast
from conformkit.reference.vision.model import VisionTransformer
from conformkit.spec.variants import Variant


def models() -> dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    ids = torch.randint(1, 11, (32, 6))
    lm = TinyTransformerLM(11, 8, 2, 2, 12, 6)
    return {
        "language-model": (lm, (ids,)), "fused": (lm, (ids,)),
        "encoder-decoder": (Transformer(11, 11, 8, 2, 1, 1, 12, 6), (ids, ids)),
        "bert": (BertModel(11, 8, 2, 2, 12, 6), (ids,)),
        "vit": (VisionTransformer(4, 2, 1, 3, 8, 2, 2, 12), (torch.randn(32, 1, 4, 4),)),
    }  # fmt: skip


def first(output: torch.Tensor | tuple[torch.Tensor, ...]) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.mark.parametrize("kind", ["language-model", "fused", "encoder-decoder", "bert", "vit"])
@torch.no_grad()
def test_it_acts_in_training_only_and_not_at_rate_0(kind: str) -> None:
    """Would break if a kind of model, or its fused form, did not have it, or had it in evaluation."""
    model, given = models()[kind]
    place_stochastic_depth(model, 0.0)
    before = first(model.train()(*given))
    assert torch.equal(first(model(*given)), before)
    place_stochastic_depth(model, 0.5)
    tried = Fast(model, Speed()) if kind == "fused" else model
    torch.testing.assert_close(first(tried.eval()(*given)), before)
    assert not torch.allclose(first(tried.train()(*given)), before)


@pytest.mark.parametrize("placement", ["pre", "post"])
@torch.no_grad()
def test_a_row_has_a_layer_whole_or_not_at_all_and_later_ones_less_often(placement: str) -> None:
    """Would break with one draw for the batch, with equal rates, or with a mean that is not the layer's."""
    torch.manual_seed(1)
    model = TinyTransformerLM(11, 8, 2, 2, 12, 6, variant=Variant(placement=placement)).double()  # type: ignore[arg-type]
    x = torch.randn(4000, 3, 8, dtype=torch.float64)
    whole = [block.eval()(x) for block in model.blocks]
    place_stochastic_depth(model, 0.6)
    for block, y, rate in zip(model.blocks, whole, (0.3, 0.6), strict=True):
        drawn = block.train()(x)
        left = (drawn == x).flatten(1).all(dim=1)  # (B,)
        assert left.double().mean().item() == pytest.approx(rate, abs=0.04)  # five standard deviations
        kept = x + (y - x) / (1 - rate) if placement == "pre" else y
        torch.testing.assert_close(drawn[~left], kept[~left])


def test_a_rate_that_is_no_probability_is_refused() -> None:
    with pytest.raises(SizeError, match="between 0 and 1"):
        place_stochastic_depth(TinyTransformerLM(11, 8, 2, 1, 12, 6), 1.5)
