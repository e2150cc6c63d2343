"""The estimate of memory is near what an update really takes, and taking it changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from conformkit.reference.training.config import TrainingConfig, recipe, with_changes
from conformkit.reference.training.memory import memory_estimate, shown
from conformkit.reference.training.pairs.session import begin_pairs
from conformkit.reference.training.session import begin

os.environ.setdefault("KINETO_LOG_LEVEL", "5")


def peak(update: Callable[[], object]) -> int:
    """Return the most bytes that are allocated at a time, beyond those allocated before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        update()
    assert record.profiler is not None
    held = most = 0
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fused", [True, False])
def test_it_is_near_what_an_update_takes(config: TrainingConfig, tmp_path: Path, fused: bool) -> None:
    changes: dict[str, Any] = {
        "model.d_model": 64, "model.d_ff": 256, "model.block_size": 64, "training.batch_size": 16, "speed.fused": fused,
    }  # fmt: skip
    run = begin(with_changes(config, changes), tmp_path / "run").run
    estimate = memory_estimate(run)
    run.update()  # gradients and moments are there from now on
    kept = 12 * sum(parameter.numel() for parameter in run.model.parameters())
    assert estimate == pytest.approx(kept + peak(run.update), rel=0.25)


@pytest.mark.filterwarnings("ignore")
def test_it_is_near_what_an_encoder_decoder_takes(tmp_path: Path) -> None:
    config = with_changes(recipe("translation"), {"data.pairs": 300, "training.buckets": 1})
    run = begin_pairs(config, tmp_path / "run").run
    torch.manual_seed(1)
    given, wanted = run.draw()
    run.draw = lambda: (given, wanted)  # type: ignore[method-assign]
    estimate = memory_estimate(run)
    run.update()
    kept = 12 * sum(parameter.numel() for parameter in run.model.parameters())
    assert estimate == pytest.approx(kept + peak(run.update), rel=0.25)


def test_taking_it_changes_no_run(config: TrainingConfig, tmp_path: Path) -> None:
    losses = []
    for name in ("with", "without"):
        run = begin(config, tmp_path / name).run
        if name == "with":
            memory_estimate(run)
            assert all(parameter.grad is None for parameter in run.model.parameters())
        losses.append([run.update()[0].item() for _ in range(3)])
    assert losses[0] == losses[1]


def test_sizes_are_written_as_people_read_them() -> None:
    assert [shown(size) for size in (5_000, 50 * 2**20, 3 * 2**29)] == ["1 MiB", "50 MiB", "1.5 GiB"]
