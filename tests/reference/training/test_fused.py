"""The fast paths compute what the transparent one computes: logits, gradients, updates."""

from __future__ import annotations

import shutil

import pytest
import torch

from conformkit.reference import TinyTransformerLM, cross_entropy
from conformkit.reference.training import config as configs
from conformkit.reference.training.config import Speed, TrainingConfig, TrainingConfigError
from conformkit.reference.training.fused import FusedLM
from conformkit.reference.training.run import build_model
from conformkit.reference.training.speed import Fast, LossScale, check_device, criterion_for, optimizer_for
from conformkit.spec.variants import CANONICAL, Variant
from tests.reference.variants import every_variant


def lm(variant: Variant = CANONICAL, dropout: float = 0.0) -> TinyTransformerLM:
    torch.manual_seed(3)
    return TinyTransformerLM(13, 16, 4, 2, 24, 9, dropout, variant=variant)


def ids(rows: int = 3, length: int = 7) -> torch.Tensor:
    return torch.randint(13, (rows, length), generator=torch.Generator().manual_seed(1))


def gradients(model: torch.nn.Module, forward: torch.nn.Module) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return logits and all gradients of a loss, with dropout drawn from the same seed."""
    model.zero_grad()
    torch.manual_seed(5)
    logits = forward(ids())
    cross_entropy(logits, ids().roll(1, dims=1)).backward()
    return logits.detach(), [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("name", every_variant())
def test_fused_kernels_give_the_same_logits_and_gradients(name: str) -> None:
    variant = every_variant()[name]
    if variant.rotary_fraction != 1.0:
        variant = variant.but(head_width="2 * d_model // num_heads")  # a part of a narrow head is no whole pair
    model = lm(variant, dropout=0.3).double()
    fused = FusedLM(model)
    assert {id(p) for p in fused.parameters()} == {id(p) for p in model.parameters()}
    logits, own = gradients(model, model)
    fast_logits, fast = gradients(model, fused)
    torch.testing.assert_close(fast_logits, logits, rtol=1e-9, atol=1e-9)
    for got, want in zip(fast, own, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-10)


def test_modes_of_the_fast_path_are_those_of_the_model() -> None:
    model = lm(dropout=0.5)
    fast = Fast(model, Speed()).eval()
    torch.testing.assert_close(fast(ids()), fast(ids()), rtol=0, atol=0)
    assert not torch.equal(fast.train()(ids()), fast(ids()))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_lower_precision_stays_close_and_weights_stay_in_float32(precision: str, fused: bool) -> None:
    model = lm()
    logits, own = gradients(model, model)
    low_logits, low = gradients(model, Fast(model, Speed(precision=precision, fused=fused)))
    assert low_logits.dtype == torch.float32
    assert not torch.equal(low_logits, logits)  # it did compute in fewer bits
    error = {"bfloat16": 0.03, "float16": 0.004}[precision]
    assert (low_logits - logits).abs().max() < error * logits.abs().max()
    for got, want in zip(low, own, strict=True):
        assert got.dtype == torch.float32
        assert (got - want).norm() < 2 * error * want.norm()


def test_the_fused_loss_is_the_written_out_one() -> None:
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    targets = torch.randint(7, (3, 5))
    torch.testing.assert_close(criterion_for(Speed(fused=True))(logits, targets), cross_entropy(logits, targets))
    assert torch.equal(criterion_for(Speed(fused=False))(logits, targets), cross_entropy(logits, targets))
    for fused in (True, False):
        smoothed = criterion_for(Speed(fused=fused), 0.3)(logits, targets)
        torch.testing.assert_close(smoothed, cross_entropy(logits, targets, label_smoothing=0.3))


def test_the_fused_optimizer_makes_the_same_updates(config: TrainingConfig) -> None:
    models = {}
    for fused in (False, True):
        changed = configs.with_changes(config, {"speed.fused_optimizer": fused})
        model = build_model(changed, 13).eval()
        model.load_state_dict(models[False].state_dict() if fused else model.state_dict())
        models[fused] = model
    for fused, model in models.items():
        optimizer = optimizer_for(model, configs.with_changes(config, {"speed.fused_optimizer": fused}))
        for _ in range(5):
            optimizer.zero_grad()
            cross_entropy(model(ids()), ids().roll(1, dims=1)).backward()
            optimizer.step()
    for ours, theirs in zip(models[False].parameters(), models[True].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_scaled_loss_gives_unscaled_gradients_and_an_overflow_no_update(config: TrainingConfig) -> None:
    model = build_model(configs.with_changes(config, {"model.dropout": 0.0}), 13)
    optimizer = optimizer_for(model, config)
    _, own = gradients(model, model)
    scale = LossScale(Speed(precision="float16"))
    model.zero_grad()
    (cross_entropy(model(ids()), ids().roll(1, dims=1)) * scale.factor).backward()
    assert scale.factor > 1000
    scale.unscale(optimizer)
    for parameter, want in zip(model.parameters(), own, strict=True):
        torch.testing.assert_close(parameter.grad, want, rtol=1e-4, atol=1e-8)
    scale.step(optimizer)
    before, factor = [p.detach().clone() for p in model.parameters()], float(scale.factor)
    next(model.parameters()).grad.fill_(float("inf"))
    scale.unscale(optimizer)
    scale.step(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert float(scale.factor) < factor


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("fused", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_traced_model_gives_the_same_logits_and_gradients(fused: bool) -> None:
    model = TinyTransformerLM(13, 8, 2, 1, 8, 9)
    logits, own = gradients(model, model)
    fast_logits, fast = gradients(model, Fast(model, Speed(compile="aot_eager", fused=fused)))
    torch.testing.assert_close(fast_logits, logits, rtol=1e-4, atol=1e-5)
    for got, want in zip(fast, own, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5)


def test_what_is_not_here_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingConfigError, match=r"speed.device is 'abacus', expected a device that is here"):
        check_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(TrainingConfigError, match=r"speed.device is 'cuda'"):
            check_device("cuda")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(
        TrainingConfigError, match=r"speed.compile is 'inductor', expected none or aot_eager: no compiler"
    ):
        Fast(lm(), Speed(compile="inductor"))
