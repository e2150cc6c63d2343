"""The weights that a fused attention does not expose are those that it mixes values by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from conformkit.conformance.driver.worker.frameworks.torch_observing import observed
from conformkit.conformance.driver.worker.observing import Notes

MASK = torch.tensor([[True, True, False, True, True]] * 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.2},
        {"attn_mask": MASK},
        {"attn_mask": MASK.double() - 1.0},
        {"attn_mask": MASK, "scale": 2.0},
    ],
    ids=["plain", "causal", "scale", "hidden", "bias", "hidden-scale"],
)
def test_weights_of_a_fused_attention_are_computed_again(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if an option were lost: entropies of heads would be those of another model."""
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    q, k, v = q.double(), k.double(), v.double()
    notes = Notes(3, 5)
    seen: list[Any] = []
    monkeypatch.setattr(notes, "value", seen.append)
    with observed({}, notes, lambda value: (value.numpy(), "float64")):
        out = F.scaled_dot_product_attention(q, k, v, **options)
    weights = [torch.as_tensor(found) for found in seen if found.shape == (1, 2, 3, 5)]
    assert weights
    torch.testing.assert_close(weights[-1] @ v, out)
