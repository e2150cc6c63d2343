"""Lion, LAMB and Adafactor against the papers' formulas in plain numbers and PyTorch's own, and in a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from conformkit.reference.errors import CheckpointError, SizeError
from conformkit.reference.optimization import AdamW
from conformkit.reference.optimizers import Adafactor, Lamb, Lion
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, with_changes
from conformkit.reference.training.loop import train
from conformkit.reference.training.memory import memory_estimate
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.session import begin
from conformkit.reference.training.sessions import resume_run

GRADIENTS = ((0.3, -0.02, 0.0, 4.0), (-0.5, 0.7, 0.0, -1.0), (0.01, 0.2, 0.0, 0.4), (2.0, -0.3, 0.0, 0.0))
START = (0.5, -1.0, 2.0, 0.25)
Rule = Callable[[int, list[float], list[float], dict[str, list[float]]], list[float]]


def by_hand(rule: Rule) -> list[float]:
    """Apply a rule, written in plain numbers, to one vector: it gets t, θ, g and what it kept, and returns θ."""
    theta, kept = list(START), {"m": [0.0] * 4, "v": [0.0] * 4}
    for count, gradient in enumerate(GRADIENTS, 1):
        theta = rule(count, theta, list(gradient), kept)
    return theta


def ours(kind: type[AdamW], **options: Any) -> list[float]:
    parameter = nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = kind([parameter], **options)
    for gradient in GRADIENTS:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    found: list[float] = parameter.tolist()
    return found


def test_lion_takes_the_papers_steps() -> None:
    rate, beta1, beta2, decay = 0.01, 0.8, 0.95, 0.1

    def rule(_: int, theta: list[float], g: list[float], kept: dict[str, list[float]]) -> list[float]:
        mixed = [beta1 * m + (1 - beta1) * one for m, one in zip(kept["m"], g, strict=True)]
        signs = [0.0 if c == 0 else math.copysign(1.0, c) for c in mixed]
        kept["m"] = [beta2 * m + (1 - beta2) * one for m, one in zip(kept["m"], g, strict=True)]
        return [w - rate * (sign + decay * w) for w, sign in zip(theta, signs, strict=True)]

    assert ours(Lion, lr=rate, betas=(beta1, beta2), weight_decay=decay) == pytest.approx(by_hand(rule), rel=1e-12)


def test_lamb_takes_the_papers_steps() -> None:
    rate, beta1, beta2, eps, decay = 0.01, 0.8, 0.95, 1e-3, 0.1

    def norm(values: Sequence[float]) -> float:
        return math.sqrt(sum(value * value for value in values))

    def rule(t: int, theta: list[float], g: list[float], kept: dict[str, list[float]]) -> list[float]:
        kept["m"] = [beta1 * m + (1 - beta1) * one for m, one in zip(kept["m"], g, strict=True)]
        kept["v"] = [beta2 * v + (1 - beta2) * one * one for v, one in zip(kept["v"], g, strict=True)]
        averages = [m / (1 - beta1**t) for m in kept["m"]]
        sizes = [math.sqrt(v / (1 - beta2**t)) + eps for v in kept["v"]]
        move = [a / s + decay * w for a, s, w in zip(averages, sizes, theta, strict=True)]
        ratio = norm(theta) / norm(move)
        return [w - rate * ratio * one for w, one in zip(theta, move, strict=True)]

    found = ours(Lamb, lr=rate, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    assert found == pytest.approx(by_hand(rule), rel=1e-12)


def test_lamb_moves_weights_of_0_by_the_rate() -> None:
    parameter = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    parameter.grad = torch.tensor([3.0, -0.1], dtype=torch.float64)
    Lamb([parameter], lr=0.01, eps=0.0, weight_decay=0.0).step()
    assert parameter.tolist() == pytest.approx([-0.01, 0.01])
    still = nn.Parameter(torch.ones(2, dtype=torch.float64))
    still.grad = torch.zeros(2, dtype=torch.float64)
    Lamb([still], lr=0.01, weight_decay=0.0).step()
    assert still.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rate", [1e-2, 0.9], ids=["the rate counts", "the root of the step counts"])
def test_adafactor_takes_the_steps_of_pytorch(rate: float) -> None:
    source = torch.Generator().manual_seed(3)
    starts = [torch.randn(shape, generator=source, dtype=torch.float64) for shape in ((3, 5), (4,), (2, 3, 4), (1, 2))]
    starts.append(torch.zeros(2, 2, dtype=torch.float64))
    mine, theirs = ([nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    optimizer = Adafactor(mine, rate, weight_decay=0.1)
    known = torch.optim.Adafactor(theirs, lr=rate, eps=(1e-30, 1e-3), weight_decay=0.1, foreach=False)
    for _ in range(6):
        for one, other in zip(mine, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=source, dtype=torch.float64) * 0.01
            other.grad = one.grad.clone()
        optimizer.step()
        known.step()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_adafactor_keeps_rows_and_columns_of_a_matrix() -> None:
    matrix, vector = nn.Parameter(torch.ones(30, 20)), nn.Parameter(torch.ones(7))
    matrix.grad, vector.grad = torch.ones(30, 20), torch.ones(7)
    optimizer = Adafactor([matrix, vector])
    optimizer.step()
    kept = [
        sum(x.numel() for x in optimizer.state[p].values() if isinstance(x, torch.Tensor)) for p in (matrix, vector)
    ]
    assert kept == [50, 7]


@pytest.mark.parametrize("kind", [Lion, Lamb, Adafactor])
def test_what_has_no_gradient_stays_and_options_are_checked(kind: type[AdamW]) -> None:
    used, unused = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    used.grad = torch.ones(2, 2)
    kind([used, unused], lr=0.1, weight_decay=0.5).step()
    assert torch.equal(unused, torch.ones(2, 2))
    assert (used < 1).all()
    with pytest.raises(SizeError, match="lr"):
        kind([used], lr=-1.0)


@pytest.mark.parametrize("kind", ["lion", "lamb", "adafactor"])
def test_a_run_with_it_learns_and_resumes_exactly(config: TrainingConfig, tmp_path: Path, kind: str) -> None:
    chosen = with_changes(config, {"optimizer.kind": kind})
    whole = begin(chosen, tmp_path / "whole")
    first = whole.run.measured()["loss"]
    train(whole.run, whole.folder, Silent())
    assert whole.run.measured()["loss"] < first
    part = begin(chosen, tmp_path / "part")
    train(part.run, part.folder, Silent(), lambda: part.run.step == 7)
    again = resume_run(part.folder.path, {})
    train(again.run, again.folder, Silent())
    theirs = whole.run.model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in again.run.model.state_dict().items())
    with pytest.raises(CheckpointError, match=f"of a run with the optimizer {kind}"):
        resume_run(part.folder.path, {"optimizer.kind": "adamw"})


def test_an_optimizer_that_keeps_less_needs_less_memory(config: TrainingConfig, tmp_path: Path) -> None:
    def estimate(kind: str) -> int:
        return memory_estimate(begin(with_changes(config, {"optimizer.kind": kind}), tmp_path / kind).run)

    parameters = sum(parameter.numel() for parameter in begin(config, tmp_path / "run").run.model.parameters())
    whole = estimate("adamw")
    assert (whole - estimate("lion"), whole - estimate("adafactor")) == (4 * parameters, 8 * parameters)


def test_pytorchs_kernel_is_adamws_only(config: TrainingConfig) -> None:
    with pytest.raises(TrainingConfigError, match=r"optimizer\.kind is 'lion', expected adamw where"):
        with_changes(config, {"optimizer.kind": "lion", "speed.fused_optimizer": True})
