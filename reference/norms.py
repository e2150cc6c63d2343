"""Normalization over the features of one position.

    LayerNorm(x) = (x - μ) / √(σ² + ε) ⊙ γ + β      μ, σ² the mean and the biased variance of x's D features
    RMSNorm(x)   = x / √(mean(x²) + ε) ⊙ γ

Ba et al. 2016; Zhang & Sennrich 2019. ε = 1e-5, inside the root. Nothing is averaged over
positions or sequences, and nothing differs between training and evaluation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.errors import SizeError
from conformkit.reference.norm_weights import OffsetNorm
from conformkit.reference.sizes import check_at_least, check_width
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["LayerNorm", "RMSNorm", "norm_for"]


class LayerNorm(nn.Module):
    """Center and scale the features of each position, then apply a learned scale γ and shift β.

    Shapes: x (…, D) → (…, D)
    Raises: SizeError when D is too small to have a deviation; ShapeError when x is not D wide.
    Source: Ba et al. 2016, §3. Differs: the variants `sample` and `population` divide by that deviation, plus ε.
    """

    def __init__(self, d_model: int, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        self.sample = variant.norm_deviation == "sample"
        self.outside = variant.norm_deviation != "biased"  # ε is added to the deviation, not under the root
        check_at_least(1, d_model=d_model)
        if self.sample and d_model == 1:
            raise SizeError("d_model", d_model, "at least 2 for a sample deviation")
        self.d_model, self.eps = d_model, variant.norm_eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if variant.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        check_width(x, self.d_model)
        wide = _widen(x)
        centered = wide - wide.mean(dim=-1, keepdim=True)
        if self.outside:
            scale = wide.std(dim=-1, correction=int(self.sample), keepdim=True) + self.eps  # (…, 1)
        else:
            scale = torch.sqrt(centered.square().mean(dim=-1, keepdim=True) + self.eps)  # (…, 1)
        y = (centered / scale).to(x.dtype) * self.weight
        return y if self.bias is None else y + self.bias


class RMSNorm(nn.Module):
    """Scale the features of each position to mean square one, without centering, then apply a learned scale γ.

    Shapes: x (…, D) → (…, D)
    Raises: ShapeError when x is not D wide.
    Source: Zhang & Sennrich 2019, eq. 4. Differs: ε, inside the root, keeps a zero row finite.
    """

    def __init__(self, d_model: int, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model)
        self.d_model, self.eps = d_model, variant.norm_eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        check_width(x, self.d_model)
        wide = _widen(x)
        scale = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)  # (…, 1)
        return (wide / scale).to(x.dtype) * self.weight


def norm_for(d_model: int, variant: Variant) -> nn.Module:
    """Build the norm that a variant names."""
    if variant.norm_weight != "scale":
        return OffsetNorm(d_model, variant=variant)
    kind = LayerNorm if variant.norm == "layernorm" else RMSNorm
    return kind(d_model, variant=variant)


def _widen(x: Tensor) -> Tensor:
    """Half precision as float32: its squares would overflow beyond 255. Other types stay."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
