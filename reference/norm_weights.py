"""Norms that multiply by 1 + γ, or by nothing.

    offset:  n ⊙ (1 + γ) + β        n the normalized row; γ and β start at 0, so that weight decay pulls towards plain n
    none:    n

Gemma has the first with RMSNorm, OLMo's first version the second with LayerNorm.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.errors import SizeError
from conformkit.reference.sizes import check_at_least, check_width
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["OffsetNorm"]


class OffsetNorm(nn.Module):
    """Normalize the features of each position, then multiply by 1 + γ and add β, or do neither.

    Shapes: x (…, D) → (…, D)
    Raises: SizeError when D is too small to have a deviation; ShapeError when x is not D wide.
    Source: Gemma Team 2024, whose code stores γ - 1; Groeneveld et al. 2024, §2.1, for no weights.
    """

    def __init__(self, d_model: int, *, variant: Variant = CANONICAL) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model)
        self.centers, self.sample = variant.norm == "layernorm", variant.norm_deviation == "sample"
        self.outside = variant.norm_deviation != "biased"
        if self.centers and self.sample and d_model == 1:
            raise SizeError("d_model", d_model, "at least 2 for a sample deviation")
        self.d_model, self.eps = d_model, variant.norm_eps
        offset = variant.norm_weight == "offset"
        self.weight = nn.Parameter(torch.zeros(d_model)) if offset else None
        self.bias = nn.Parameter(torch.zeros(d_model)) if variant.shifts else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        check_width(x, self.d_model)
        y = self.standard(x.to(torch.promote_types(x.dtype, torch.float32)))
        y = y if self.weight is None else y * (1.0 + self.weight.to(y.dtype))
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.to(x.dtype)

    def standard(self, x: Tensor) -> Tensor:
        """Return rows (…, D) of mean square 1, and of mean 0 where the norm is a LayerNorm."""
        if not self.centers:
            return F.rms_norm(x, x.shape[-1:], eps=self.eps)
        if self.outside:
            return (x - x.mean(dim=-1, keepdim=True)) / (
                x.std(-1, correction=int(self.sample), keepdim=True) + self.eps
            )
        return F.layer_norm(x, x.shape[-1:], eps=self.eps)
