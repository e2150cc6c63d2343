"""What is seen of a call: weights that a fused attention does not expose, and parts that are called past hooks."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from conformkit.conformance.driver.worker.frameworks.torch_observing import _Operations, observed
from conformkit.conformance.driver.worker.observing import Notes

MASK = torch.tensor([[True, True, False, True, True]] * 3)


class Fused:
    """An operation under the name that torch gives its own kernels."""

    overloadpacket = SimpleNamespace(__name__="_scaled_dot_product_efficient_attention")
    __call__ = staticmethod(F.scaled_dot_product_attention)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.2},
        {"attn_mask": MASK},
        {"attn_mask": MASK.double() - 1.0},
        {"attn_mask": MASK, "scale": 2.0},
        {"enable_gqa": True},
    ],
    ids=["plain", "causal", "scale", "hidden", "bias", "hidden-scale", "groups"],
)
def test_weights_of_a_fused_attention_are_computed_again(options: dict[str, Any]) -> None:
    """Would break if an option were lost: entropies of heads would be those of another model."""
    torch.manual_seed(0)
    heads = 1 if "enable_gqa" in options else 2
    q, k, v = (torch.randn(1, count, length, 4).double() for count, length in ((2, 3), (heads, 5), (heads, 5)))
    seen: list[np.ndarray] = []
    operations = _Operations(SimpleNamespace(value=seen.append, keys=5), lambda value: (value.numpy(), "float64"))  # type: ignore[arg-type]
    dispatch = inspect.unwrap(_Operations.__torch_dispatch__)  # torch wraps it in what imports its compiler: a second
    out = dispatch(operations, Fused(), (), (q, k, v), options)
    torch.testing.assert_close(torch.as_tensor(seen[0]) @ v, out)
    assert seen[0].shape == (1, 2, 3, 5)


class _Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * x


class _Outer(nn.Module):
    def __init__(self, *, direct: bool) -> None:
        super().__init__()
        self.inner, self.direct = _Inner(), direct

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner.forward(x) if self.direct else self.inner(x)


@pytest.mark.parametrize("direct", [True, False])
def test_a_part_is_seen_once_however_it_is_called(direct: bool) -> None:
    """Catches `self.attention.forward(x)`, which hooks do not see, and a part that is noted twice."""
    model, notes, own = _Outer(direct=direct), Notes(2, 3), _Inner.forward
    with observed(dict(model.named_modules()), notes, lambda value: (value.numpy(), "float32")):
        model(torch.ones(2, 3))
    assert {name: (seen["kind"], seen["calls"]) for name, seen in notes.parts.items()} == {
        "inner": ("_Inner", 1), "": ("_Outer", 1),
    }  # fmt: skip
    assert _Inner.forward is own
