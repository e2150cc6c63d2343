"""Multi-head attention from one sequence to another.

    head_h = Attention(X W_Q[h]ᵀ, M W_K[h]ᵀ, M W_V[h]ᵀ)        CrossAttention(X, M) = [head_1 … head_H] W_Oᵀ

X ∈ ℝ^(Tq×D) asks; M ∈ ℝ^(Tk×D), the memory, gives keys and values. The heads are those of MultiHeadAttention. Vaswani
et al. 2017, §3.2.3. Nothing is rotated or causal: positions of two sequences have no order.
"""

from __future__ import annotations

from torch import Tensor

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.dropout import attention_with_dropout
from conformkit.reference.errors import ShapeError
from conformkit.reference.multi_head_attention import MultiHeadAttention, _check_mask
from conformkit.reference.scores import unscaled_queries
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["CrossAttention"]


class CrossAttention(MultiHeadAttention):
    """Let each query row look, in several heads, at the rows of another sequence.

    Shapes: query (B, Tq, D), key and value (B, Tk, D), mask broadcastable to (B, H, Tq, Tk) → (B, Tq, D)
    Raises: SizeError as MultiHeadAttention. ShapeError when an input is not (B, T, D), batches or the lengths of key
            and value differ, or a mask has three axes, so that batch and heads could be mixed up.
    Source: Vaswani et al. 2017, §3.2.3. Differs: key and value are given apart.
    """

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, *, variant: Variant = CANONICAL
    ) -> None:  # fmt: skip
        super().__init__(d_model, num_heads, dropout, causal=False, variant=variant)
        self.relative = None

    def forward(  # type: ignore[override]  # it has the layers of self-attention, not its call
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Map queries (B, Tq, D) to (B, Tq, D); `mask` hides rows of key and value."""
        self._check_inputs(query, key, value)
        _check_mask(mask)
        q = self._split(self.q(query), self.num_heads)  # (B, H, Tq, dh)
        k = self._split(self.k(key), self.kv_heads)  # (B, Hkv, Tk, dh)
        v = self._split(self.v(value), self.kv_heads)  # (B, Hkv, Tk, dh)
        if self.variant.qk_norm != "none":
            q, k = self.normalized(q, k)
        served = self.num_heads // self.kv_heads
        k = k.repeat_interleave(served, dim=1)  # (B, H, Tk, dh)
        v = v.repeat_interleave(served, dim=1)  # (B, H, Tk, dh)
        q = unscaled_queries(q, self.variant)  # (B, H, Tq, dh)
        if self.variant.score_cap:
            return self._shaped(q, k, v, mask, query)
        if self.kernel is not None:
            return self._merged(self.kernel(self, q, k, v, mask), query)
        heads = scaled_dot_product_attention(q, k, v, mask)  # (B, H, Tq, dh)
        if self.weight_dropout > 0.0 and self.training:
            heads = attention_with_dropout(q, k, v, mask, self.weight_dropout)  # (B, H, Tq, dh)
        y = heads.transpose(1, 2).flatten(2)  # (B, Tq, H·dh)
        if self.out is not None:
            y = self.out(y)  # (B, Tq, D)
        dropped: Tensor = self.dropout(y)
        return dropped

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, rows in (("query", query), ("key", key), ("value", value)):
            if rows.ndim != 3 or rows.shape[-1] != self.d_model:
                raise ShapeError(f"the shape of the {name}", tuple(rows.shape), f"(batch, positions, {self.d_model})")
            if len(rows) != len(query):
                raise ShapeError(f"the batch of the {name}", len(rows), f"that of the query = {len(query)}")
        if key.shape[1] != value.shape[1]:
            raise ShapeError("the length of the key", key.shape[1], f"that of the value = {value.shape[1]}")
