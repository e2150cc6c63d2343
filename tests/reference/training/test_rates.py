"""Schedules besides the contract's, by hand and against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference.errors import SizeError
from conformkit.reference.training.config import TrainingConfigError, parse, shortened, with_changes
from conformkit.reference.training.rates import one_cycle_schedule, rate_at, wsd_schedule

RUN = """
[model]
d_model = 8
num_heads = 2
num_layers = 1
d_ff = 8
block_size = 4
[training]
steps = 20
batch_size = 2
[optimizer]
peak = 1.0
"""


def rates(**changes: object) -> list[float]:
    config = with_changes(parse(RUN), {f"optimizer.{name}": value for name, value in changes.items()})
    return [rate_at(config, step) for step in range(1, config.training.steps + 1)]


def test_wsd_rises_stays_and_falls_at_the_end() -> None:
    found = rates(schedule="wsd", warmup=4, decay=5, floor=0.5)
    assert found == pytest.approx([0.25, 0.5, 0.75, *[1.0] * 12, 0.9, 0.8, 0.7, 0.6, 0.5])
    assert wsd_schedule(100, 1.0, 0.5, 4, 20, 5) == 0.5
    assert wsd_schedule(0, 1.0, 0.5, 4, 20, 5) == 0.0


def test_without_a_decay_wsd_falls_in_the_last_tenth() -> None:
    assert rates(schedule="wsd", warmup=2) == pytest.approx([0.5, *[1.0] * 17, 0.5, 0.0])
    assert rates(schedule="wsd", warmup=19)[-3:] == pytest.approx([18 / 19, 1.0, 0.0])


def test_linear_falls_from_the_end_of_the_warm_up() -> None:
    found = rates(schedule="linear", warmup=4, floor=0.2)
    assert found == pytest.approx([0.25, 0.5, 0.75, *(1.0 - 0.05 * step for step in range(17))])


@pytest.mark.parametrize("warmup", [2, 6, 19])
def test_one_cycle_is_pytorchs(warmup: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.4, total_steps=20, pct_start=warmup / 20, cycle_momentum=False, final_div_factor=100.0
    )
    for step in range(1, 21):
        ours = one_cycle_schedule(step, 0.4, 0.4 / 2500, warmup, 20)
        assert ours == pytest.approx(theirs.get_last_lr()[0], rel=1e-9), step
        optimizer.step()
        if step < 20:
            theirs.step()
    assert rates(schedule="one_cycle", warmup=1)[0] == 1.0
    assert rates(schedule="one_cycle", warmup=6)[:6] == [one_cycle_schedule(s, 1.0, 0.0, 6, 20) for s in range(1, 7)]


def test_what_does_not_fit_the_run_is_refused() -> None:
    with pytest.raises(TrainingConfigError, match=r"optimizer\.decay is 17, expected at most .* = 16"):
        rates(schedule="wsd", warmup=4, decay=17)
    for schedule in ("linear", "one_cycle"):
        with pytest.raises(TrainingConfigError, match=r"optimizer\.warmup is 20, expected fewer than"):
            rates(schedule=schedule, warmup=20)
    with pytest.raises(SizeError, match="decay"):
        wsd_schedule(1, 1.0, 0.0, 1, 10, 0)
    with pytest.raises(SizeError, match="step"):
        one_cycle_schedule(-1, 1.0, 0.0, 1, 10)


def test_a_shorter_run_has_a_shorter_decay() -> None:
    config = with_changes(parse(RUN), {"optimizer.schedule": "wsd", "optimizer.warmup": 4, "optimizer.decay": 8})
    changes = shortened(config, {"training.steps": 10})
    assert changes == {"training.steps": 10, "optimizer.warmup": 2, "optimizer.decay": 4}
    assert shortened(config, {"training.steps": 10, "optimizer.decay": 1})["optimizer.decay"] == 1
    assert with_changes(config, changes).optimizer.decay == 4
