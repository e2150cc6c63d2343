"""Self-attention with a single head.

    SelfAttention(X) = Attention(X W_Qᵀ, X W_Kᵀ, X W_Vᵀ)      W_Q, W_K ∈ ℝ^(dk×D), W_V ∈ ℝ^(dv×D)

Vaswani et al. 2017, §3.2.3. Weights have PyTorch's orientation (out, in), the transpose of the formula's in the paper.
"""

from __future__ import annotations

from torch import Tensor, nn

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.masks import causal_mask
from conformkit.reference.sizes import check_at_least, check_rows
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["SelfAttention"]


class SelfAttention(nn.Module):
    """Let every position look at the others of its own sequence, or at the earlier ones.

    Shapes: x (B, T, D) → (B, T, dv)
    Raises: SizeError for a width below 1; ShapeError when x is not (B, T, D).
    Source: Vaswani et al. 2017, §3.2.3. A width of 0 is refused, not replaced by the default.
    """

    def __init__(
        self,
        d_model: int,
        d_k: int | None = None,
        d_v: int | None = None,
        causal: bool = True,
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        d_k = d_model if d_k is None else d_k
        d_v = d_model if d_v is None else d_v
        check_at_least(1, d_model=d_model, d_k=d_k, d_v=d_v)
        self.d_model, self.causal = d_model, causal
        self.q = nn.Linear(d_model, d_k, bias=variant.qkv_bias)
        self.k = nn.Linear(d_model, d_k, bias=variant.qkv_bias)
        self.v = nn.Linear(d_model, d_v, bias=variant.qkv_bias)
        if not variant.key_bias:
            self.k.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, dv)."""
        check_rows(x, self.d_model)
        length = x.shape[1]
        mask = causal_mask(length, device=x.device) if self.causal else None  # (T, T)
        return scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), mask)  # (B, T, dv)
