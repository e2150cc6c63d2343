"""The model as a whole: number formats, initial loss, what survives a cast, a copy and a training step."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from conformkit.reference import LayerNorm, PositionalEncoding, RMSNorm, TinyTransformerLM, TransformerBlock
from conformkit.reference.positional_encoding import sinusoids
from conformkit.spec.variants import CANONICAL, Variant

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def model(variant: Variant = CANONICAL, dropout: float = 0.0) -> TinyTransformerLM:
    torch.manual_seed(5)
    return TinyTransformerLM(23, 16, 4, 3, 40, 12, dropout, variant=variant)


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(0, 23, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_logits_have_the_models_number_format(dtype: torch.dtype) -> None:
    logits = model().to(dtype)(ids(2, 12))
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_other_integers_are_ids_too(dtype: torch.dtype) -> None:
    lm = model()
    assert torch.equal(lm(ids(2, 5).to(dtype)), lm(ids(2, 5)))


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
def test_the_initial_loss_is_near_that_of_the_uniform_distribution(tied: bool, scaled: bool, positions: str) -> None:
    variant = CANONICAL.but(tied=tied, embedding_scale=scaled, positions=positions)
    torch.manual_seed(2)
    lm = TinyTransformerLM(50, 64, 4, 2, 128, 32, variant=variant)
    drawn = torch.randint(0, 50, (16, 33))
    loss = nn.functional.cross_entropy(lm(drawn[:, :-1]).flatten(0, 1), drawn[:, 1:].flatten())
    assert abs(loss.item() - math.log(50)) < 0.35


def test_a_tied_head_stays_tied() -> None:
    lm = model(Variant(tied=True))
    twin = copy.deepcopy(lm.double())
    twin.load_state_dict(lm.state_dict())
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    twin(ids(2, 5)).square().mean().backward()
    optimizer.step()
    assert twin.head.weight is twin.embedding.weight
    assert not torch.equal(twin.head.weight, lm.head.weight)


def test_sinusoids_are_accurate_again_after_a_round_trip_through_half_precision() -> None:
    encoding = PositionalEncoding(7, 5000).half().double()
    x = torch.zeros(1, 5000, 7, dtype=torch.float64)
    assert torch.equal(encoding(x)[0], sinusoids(5000, 7))


outside = [LayerNorm(8, variant=Variant(norm_deviation=name)) for name in ("sample", "population")]


@pytest.mark.parametrize("norm", [LayerNorm(8), RMSNorm(8), *outside])
def test_a_row_of_zeros_has_a_finite_norm_and_gradient(norm: nn.Module) -> None:
    x = torch.zeros(2, 8, requires_grad=True)
    y = norm(x)
    y.square().sum().backward()
    assert x.grad is not None
    assert y.isfinite().all()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_norms_of_large_halves_do_not_overflow(kind: type[nn.Module], dtype: torch.dtype) -> None:
    x = torch.linspace(-6e4, 6e4, 8).to(dtype)
    y = kind(8).to(dtype)(x)
    assert y.dtype == dtype
    assert 0.9 < y.float().square().mean() < 1.1


def test_dropout_never_touches_the_residual_stream() -> None:
    block = TransformerBlock(8, 2, 16, dropout=0.5)
    for parameter in (block.attention.out.weight, block.feed_forward.down.weight, block.feed_forward.down.bias):  # type: ignore[union-attr]
        nn.init.zeros_(parameter)
    x = torch.randn(2, 5, 8)
    assert torch.equal(block.train()(x), x)


def test_dropout_varies_in_training_only() -> None:
    lm = model(dropout=0.5)
    assert not torch.equal(lm(ids(2, 5)), lm(ids(2, 5)))
    state = torch.get_rng_state()
    assert torch.equal(lm.eval()(ids(2, 5)), lm(ids(2, 5)))
    assert torch.equal(torch.get_rng_state(), state)


def test_every_parameter_receives_a_finite_gradient() -> None:
    lm = model(Variant(gated=True, qkv_bias=True, output_bias=True, positions="learned", embedding_norm=True))
    lm(ids(4, 12)).logsumexp(-1).sum().backward()
    for name, parameter in lm.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert name.endswith("k.bias") or parameter.grad.abs().max() > 1e-6, name


def test_an_empty_batch_and_an_empty_row_give_empty_logits() -> None:
    lm = model()
    assert lm(ids(0, 5)).shape == (0, 5, 23)
    assert lm(ids(2, 0)).shape == (2, 0, 23)
