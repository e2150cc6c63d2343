"""On a GPU: the switches compute what the transparent path computes there, and a stopped run continues."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformkit.reference import TinyTransformerLM, cross_entropy
from conformkit.reference.checkpoints import read_checkpoint
from conformkit.reference.training.config import Speed, TrainingConfig, with_changes
from conformkit.reference.training.loop import train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.session import begin, load_trained
from conformkit.reference.training.sessions import resume_run
from conformkit.reference.training.speed import Fast
from conformkit.spec.variants import CANONICAL, FAMOUS
from tests.gpus import HERE

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HERE["cuda"], reason="not run: needs cuda")]
DEVICE = "cuda"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("precision", "compiled", "error"),
    [("float32", "none", 1e-4), ("bfloat16", "none", 0.03), ("float16", "none", 0.004), ("float32", "inductor", 1e-3)],
    ids=["fused", "bfloat16", "float16", "compiled"],
)
@pytest.mark.parametrize("variant", ["canonical", "llama"])
def test_fast_paths_agree_with_the_transparent_one(variant: str, precision: str, compiled: str, error: float) -> None:
    torch.manual_seed(3)
    model = TinyTransformerLM(65, 64, 4, 2, 128, 32, variant=FAMOUS.get(variant, CANONICAL)).to(DEVICE)
    fast = Fast(model, Speed(device=DEVICE, precision=precision, compile=compiled))
    ids = torch.randint(65, (8, 32), device=DEVICE)
    found = []
    for forward in (model, fast):
        model.zero_grad()
        logits = forward(ids)
        cross_entropy(logits, ids.roll(1, dims=1)).backward()
        found.append((logits.detach(), [parameter.grad.clone() for parameter in model.parameters()]))
    (want, gradients), (got, fast_gradients) = found
    assert (got - want).abs().max() <= error * want.abs().max()
    for a, b in zip(fast_gradients, gradients, strict=True):
        assert (a - b).norm() <= 2 * error * b.norm() + 1e-7


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_stopped_run_continues(config: TrainingConfig, tmp_path: Path, precision: str) -> None:
    there = with_changes(config, {"speed.device": DEVICE, "speed.precision": precision, "speed.fused_optimizer": True})
    whole = begin(there, tmp_path / "whole")
    train(whole.run, whole.folder, Silent())
    stopped = begin(there, tmp_path / "stopped")
    train(stopped.run, stopped.folder, Silent(), lambda: stopped.run.step == 6)
    again = resume_run(stopped.folder.path, {})
    assert again.run.step == 6
    train(again.run, again.folder, Silent(), sample=again.sample)
    for a, b in zip(again.run.model.parameters(), whole.run.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)  # sums on a GPU have no fixed order
    assert read_checkpoint(again.folder.best).weights["head.weight"].device.type == "cpu"
    trained = load_trained(again.folder.path, DEVICE)
    text = torch.tensor([[1, 2]], device=DEVICE)
    want = trained.model.generate(text, 12, temperature=0)
    assert torch.equal(trained.model.generate(text, 12, temperature=0, use_cache=True), want)
