"""Whatever a worker replies, the harness reaches a verdict, and wrong code never passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.client.session import Limits
from conformkit.conformance.engine.finding import LoadFailure

from .attack import FOLDER
from .world import World

START = """import torch

from . import changing
from .wrong import MultiHeadAttention, scaled_dot_product_attention

changing.start({seed}, {rate})
"""


@pytest.mark.parametrize("rate", [0.02, 0.3], ids=["now-and-then", "often"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
def test_changed_replies_end_in_verdicts(seed: int, rate: float, world: World, tmp_path: Path) -> None:
    package = tmp_path / "changed"
    package.mkdir()
    for name, file in (("changing", "changing"), ("wrong", "wrong_torch")):
        (package / f"{name}.py").write_bytes((FOLDER / "base" / f"{file}.py").read_bytes())
    (package / "__init__.py").write_text(START.format(seed=seed, rate=rate), encoding="utf-8")
    limits = Limits(call_seconds=10.0)
    try:
        report = world.judge(package, torch=True, only=("SDPA", "MHA", "MASK", "GRAD"), diagnose=False, limits=limits)
    except LoadFailure:
        return
    assert report.complete
    assert not report.conforms
