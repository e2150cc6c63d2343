"""Code that is right in the format of its author, where its framework is wrong in float64, is judged in the former."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from conformkit.conformance import check
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.probing.framework_faults import fault_of

if TYPE_CHECKING:
    from conformkit.conformance.engine.results import Report

CODE = """
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} is not a multiple of {num_heads}")
        self.num_heads, self.causal = num_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mask = torch.full((T, T), float("-inf")).triu(1) if self.causal else torch.zeros(T, T)
        MISTAKE
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(B, T, D))
"""


def judged(folder: Path, mistake: str) -> Report:
    (folder / "theirs.py").write_text(CODE.replace("MISTAKE", mistake), encoding="utf-8")
    return check(folder / "theirs.py", only=["MHA-PREFIX", "MHA-SIZES", "MHA-CAUSAL"])


def test_a_float32_mask_meets_float64_values_only_here(tmp_path: Path) -> None:
    """Would break if torch's silent fault from 16 positions on were taken for the author's."""
    report = judged(tmp_path, "pass")
    assert report.conforms, report.failures()
    assert any("a fault of the framework; it is judged in float32" in note for note in report.notes)


@pytest.mark.parametrize("mistake", ["mask[8:] = 0", "mask = mask.double(); mask[8:] = 0"], ids=["float32", "float64"])
def test_a_mask_that_is_wrong_in_both_formats_is_red(tmp_path: Path, mistake: str) -> None:
    """Would break if whatever is wrong at many positions were excused."""
    report = judged(tmp_path, mistake)
    assert not report.conforms
    assert not any("a fault of the framework" in note for note in report.notes)


def test_a_worker_that_is_lost_at_many_positions_is_no_fault_of_the_framework() -> None:
    """Would break if attention that never ends for long rows, or crashes there, could not be judged at all."""

    def lost(**_: Any) -> None:
        raise WorkerLost("timeout", "no answer after 20 s")

    subject: Any = SimpleNamespace(
        bound=SimpleNamespace(fits=True, dtype="float64"), link=SimpleNamespace(is_torch=True), sizes=dict, build=lost
    )
    assert fault_of(subject, ("float64", "float32")) is None
