"""Position-wise feed-forward network.

    FFN(x) = W_down σ(W_up x + b_up) + b_down                      W_up ∈ ℝ^(F×D), W_down ∈ ℝ^(D×F)
    FFN(x) = W_down (σ(W_gate x + b_gate) ⊙ (W_up x + b_up)) + b_down      gated

With experts there are several such networks, experts.py.

Vaswani et al. 2017, §3.3; gated: Shazeer 2020. σ is GELU (Hendrycks & Gimpel 2016), exact
here: x Φ(x), Φ the distribution function of the standard normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from conformkit.reference.experts import Experts
from conformkit.reference.sizes import check_at_least, check_rate, check_width
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["ACTIVATIONS", "FeedForward"]


def gelu(x: Tensor) -> Tensor:
    """Return x Φ(x). Source: Hendrycks & Gimpel 2016; Φ is written with erfc, which keeps the left tail accurate."""
    return x * 0.5 * torch.erfc(-x / math.sqrt(2.0))


def gelu_tanh(x: Tensor) -> Tensor:
    """Return the approximation of x Φ(x) that GPT-2 uses. Source: Hendrycks & Gimpel 2016, §2."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def relu(x: Tensor) -> Tensor:
    """Return max(x, 0)."""
    return x.clamp(min=0.0)


def relu2(x: Tensor) -> Tensor:
    """Return max(x, 0)². Source: So et al. 2021."""
    return torch.relu(x) ** 2


def quick_gelu(x: Tensor) -> Tensor:
    """Return x σ(1.702 x). Source: Hendrycks & Gimpel 2016, §2."""
    return x * torch.sigmoid(1.702 * x)


def silu(x: Tensor) -> Tensor:
    """Return x / (1 + e⁻ˣ)."""
    return x * torch.sigmoid(x)


def limited(gate: Tensor, up: Tensor, activation: Callable[[Tensor], Tensor], limit: float, offset: bool) -> Tensor:
    """Return σ(min(gate, c)) ⊙ (clip(up, -c, c) + 1), c the limit, 0 for none; the 1 where there is an offset.

    Source: gpt-oss, swiglu.
    """
    if limit:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return activation(gate) * (up + 1.0 if offset else up)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "relu2": relu2,
    "quick_gelu": quick_gelu,
}


class FeedForward(nn.Module):
    """Pass each position, on its own, through the same two layers.

    Shapes: x (…, D) → (…, D)
    Raises: SizeError for a width below 1, or a dropout that is no probability; ShapeError when x is not D wide.
    Source: Vaswani et al. 2017, §3.3. Differs: dropout acts after the activation.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model, d_ff=d_ff)
        check_rate(dropout)
        self.d_model = d_model
        self.experts: Experts | None = None
        if variant.experts:
            one = variant.but(experts=0)
            self.experts = Experts(d_model, lambda: FeedForward(d_model, d_ff, dropout, variant=one), variant=variant)
            return
        self.activation = ACTIVATIONS[variant.activation]
        self.up = nn.Linear(d_model, d_ff, bias=variant.ffn_bias)
        self.gate = nn.Linear(d_model, d_ff, bias=variant.ffn_bias) if variant.gated else None
        self.down = nn.Linear(d_ff, d_model, bias=variant.ffn_bias)
        self.dropout = nn.Dropout(dropout)
        self.limits = (variant.gate_limit, variant.gate_offset) if variant.gate_limit or variant.gate_offset else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        check_width(x, self.d_model)
        if self.experts is not None:
            mixed: Tensor = self.experts(x)
            return mixed
        if self.gate is not None and self.limits is not None:
            out: Tensor = self.down(self.dropout(limited(self.gate(x), self.up(x), self.activation, *self.limits)))
            return out
        up = self.up(x)  # (…, F)
        hidden = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up  # (…, F)
        y: Tensor = self.down(self.dropout(hidden))  # (…, D)
        return y
