"""A training step, accumulation and evaluation on a real model."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from conformkit.reference import AdamW, TinyTransformerLM, cross_entropy, evaluate, train_step
from conformkit.reference.errors import SizeError
from conformkit.reference.steps import accumulate


def lm(dropout: float = 0.0) -> TinyTransformerLM:
    torch.manual_seed(2)
    return TinyTransformerLM(13, 8, 2, 2, 16, 6, dropout).double()


def batch(rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    return torch.randint(13, (rows, 6), generator=source), torch.randint(13, (rows, 6), generator=source)


def test_a_step_is_zero_forward_backward_clip_update() -> None:
    ours, theirs = lm(), lm()
    mine = AdamW(ours.parameters(), lr=0.01)
    reference = torch.optim.AdamW(theirs.parameters(), lr=0.01)
    for seed in range(3):
        x, y = batch(4, seed)
        loss = train_step(ours, mine, x, y, max_norm=0.05)
        reference.zero_grad()
        want = nn.functional.cross_entropy(theirs(x).flatten(0, 1), y.flatten())
        want.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.05)
        reference.step()
        assert loss == pytest.approx(want.item(), rel=1e-5)  # torch's clipping adds 1e-6 to the norm
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_a_step_trains_in_training_mode_whatever_the_mode_before() -> None:
    model = lm(dropout=0.5).eval()
    train_step(model, AdamW(model.parameters()), *batch(2))
    assert all(module.training for module in model.modules())


def test_a_step_leaves_no_gradient_of_the_one_before() -> None:
    once, twice = lm(), lm()
    first, second = AdamW(once.parameters(), lr=0.0), AdamW(twice.parameters(), lr=0.0)
    train_step(once, first, *batch(2))
    train_step(twice, second, *batch(3, seed=9))
    train_step(twice, second, *batch(2))
    gradients = zip(once.parameters(), twice.parameters(), strict=True)
    assert all(torch.equal(a.grad, b.grad) for a, b in gradients)


def test_micro_batches_give_the_gradients_of_one_large_batch() -> None:
    whole, parts = lm(), lm()
    x, y = batch(7)
    y[0, 3:] = -100
    y[5] = -100
    loss = cross_entropy(whole(x), y)
    loss.backward()
    total = accumulate(parts, [(x[:2], y[:2]), (x[2:3], y[2:3]), (x[3:], y[3:])])
    assert total.item() == pytest.approx(loss.item(), rel=1e-12)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-9, atol=1e-12)


def test_evaluation_weighs_tokens_not_batches() -> None:
    model = lm()
    x, y = batch(5)
    y[3, 1:] = -100
    with torch.no_grad():
        want = cross_entropy(model(x), y).item()
    assert evaluate(model, [(x[:1], y[:1]), (x[1:], y[1:])]) == pytest.approx(want, rel=1e-12)


def test_evaluation_changes_nothing() -> None:
    model = lm(dropout=0.5).train()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    assert evaluate(model, [batch(3)]) == evaluate(model, [batch(3)])
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_batch_is_refused() -> None:
    with pytest.raises(SizeError, match="at least 1"):
        evaluate(lm(), [])
    with pytest.raises(SizeError, match="at least 1"):
        accumulate(lm(), [])
