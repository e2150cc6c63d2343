"""Wholes inherit float32 from their parts, and only from these."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run
from conformkit.spec.variants import CANONICAL

CONSTANT = Patch("feed_forward.py", "math.sqrt(2.0))", "torch.tensor(math.sqrt(2.0)).to(x.dtype))", at="gelu")
"""1.41421354 instead of 1.41421356."""


ROOT = Patch("attention.py", "(q / math.sqrt(q.shape[-1]))", "(q / torch.sqrt(torch.tensor(float(q.shape[-1]))))")
"""Exact where the width of a head is a square, as it is at the usual sizes."""
LEAK = Patch("masks.py", 'scores.masked_fill(~mask, float("-inf"))', "scores.masked_fill(~mask, -25.0)")
"""Later keys keep a share of some 1e-11."""


def precisions(folder: Path, warm: LentFactory) -> dict[str, str]:
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        return {bound.component.name: bound.precision for bound in implementation.bounds()}


def test_a_block_is_as_accurate_as_its_feed_forward(warm: LentFactory, tmp_path: Path) -> None:
    found = precisions(write_reference(tmp_path / "m", (CONSTANT,)), warm)
    assert {name for name, precision in found.items() if precision == "float32"} == {
        "FeedForward", "TransformerBlock", "TinyTransformerLM"
    }  # fmt: skip


@pytest.mark.full(guard="test_a_block_is_as_accurate_as_its_feed_forward")
def test_what_holds_such_a_constant_conforms_whatever_is_drawn(warm: LentFactory, tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "m", (CONSTANT,))
    for seed in range(3):
        request = RunRequest(impl=str(folder), only=("BLOCK-ORACLE", "FFN-ORACLE", "LM-ORACLE"), seed=seed, processes=1)
        assert run(request, trusted=lambda: warm).conforms


def test_exact_wholes_stay_exact(warm: LentFactory, tmp_path: Path) -> None:
    found = precisions(write_reference(tmp_path / "m", variant=CANONICAL.but(activation="relu")), warm)
    assert set(found.values()) == {"float64"}


def test_a_square_root_in_float32_is_seen_though_the_usual_head_width_is_a_square(
    warm: LentFactory, tmp_path: Path
) -> None:
    folder = write_reference(tmp_path / "m", (ROOT,))
    found = precisions(folder, warm)
    assert {found[name] for name in ("ScaledDotProductAttention", "MultiHeadAttention", "TransformerBlock")} == {
        "float32"
    }
    request = RunRequest(impl=str(folder), only=("SDPA-SCALE", "MHA-ORACLE", "BLOCK-ORACLE"), processes=1)
    assert run(request, trusted=lambda: warm).conforms


def test_a_mask_that_leaks_a_little_is_no_rounding(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if a leak as small as float32's rounding were judged with float32's tolerance."""
    folder = write_reference(tmp_path / "m", (LEAK,))
    assert precisions(folder, warm)["MultiHeadAttention"] == "float64"
    assert not run(RunRequest(impl=str(folder), only=("LM-CAUSAL",), processes=1), trusted=lambda: warm).conforms
