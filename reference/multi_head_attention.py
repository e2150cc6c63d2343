"""Multi-head self-attention.

    head_h = Attention(X W_Q[h]ᵀ, X W_K[h]ᵀ, X W_V[h]ᵀ)        MHA(X) = [head_1 … head_H] W_Oᵀ

W_Q[h] is rows h·dh to (h+1)·dh of W_Q ∈ ℝ^((H·dh)×D), likewise W_K and W_V; W_O ∈ ℝ^(D×(H·dh)); dh = D/H. Vaswani et
al. 2017, §3.2.2. Many fuse the three projections into one for speed; three are easier to read. With fewer key/value
heads than query heads (Ainslie et al. 2023), each serves a run of query heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.dropout import attention_with_dropout
from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.latent_attention import add_latents, latent_heads
from conformkit.reference.masks import causal_mask, combine_masks
from conformkit.reference.norms import norm_for
from conformkit.reference.output_gates import gate_for, gated
from conformkit.reference.relative_positions import relative_bias, table_for
from conformkit.reference.rotary import rotate
from conformkit.reference.scores import shaped_attention, unscaled_queries, variant_mask
from conformkit.reference.sizes import check_at_least, check_rate, check_rows, evaluate
from conformkit.spec.rotary import turns_whole_pairs
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Kernel", "MultiHeadAttention"]

Kernel = Callable[["MultiHeadAttention", Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Mixes heads: a layer, its queries, keys and values (B, H, T, dh), and what is hidden besides later keys."""


class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, each with its own share of the features.

    Shapes: x (B, T, D), mask broadcastable to (B, H, T, T) → (B, T, D)
    Raises: SizeError when d_model is no multiple of num_heads, a size is below 1, or dropout is no probability.
            ShapeError when x is not (B, T, D), or a mask has three axes, so that batch and heads could be mixed up.
    Source: Vaswani et al. 2017, §3.2.2. Differs: an optional mask besides causality.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        causal: bool = True,
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        check_at_least(1, d_model=d_model, num_heads=num_heads)
        check_rate(dropout)
        self.d_model, self.num_heads, self.causal, self.variant = d_model, num_heads, causal, variant
        self.causal_bias = causal
        """Whether relative positions are of earlier keys only, also where the caller's mask hides the later ones."""
        self.head_width = evaluate(variant.head_width, d_model=d_model, num_heads=num_heads)
        self.kv_heads = evaluate(variant.kv_heads, d_model=d_model, num_heads=num_heads)
        self._check_heads()
        query_width, key_width = num_heads * self.head_width, self.kv_heads * self.head_width
        self.q = nn.Linear(d_model, query_width, bias=variant.qkv_bias)
        self.k = nn.Linear(d_model, key_width, bias=variant.qkv_bias)
        self.v = nn.Linear(d_model, key_width, bias=variant.qkv_bias)
        if not variant.key_bias:
            self.k.register_parameter("bias", None)
        if variant.has_latent:
            query_width = num_heads * add_latents(self)
        self.out = nn.Linear(query_width, d_model, bias=variant.output_bias) if variant.output_projection else None
        self.output_gate = gate_for(d_model, num_heads, self.head_width, variant)
        self.dropout = nn.Dropout(dropout)
        self.weight_dropout = 0.0
        self.kernel: Kernel | None = None
        """What mixes the heads in place of the formula: attention in blocks, or linear attention."""
        self.sinks = nn.ParameterDict({"weight": torch.zeros(num_heads)}) if variant.sinks else None
        self.relative = table_for(num_heads, variant)
        if variant.qk_norm != "none":
            one_head = variant.qk_norm == "heads"
            self.q_norm = norm_for(self.head_width if one_head else query_width, variant)
            self.k_norm = norm_for(self.head_width if one_head else key_width, variant)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, T, D) to (B, T, D); `mask` hides more than causality does."""
        check_rows(x, self.d_model)
        _check_mask(mask)
        if self.variant.has_latent:
            return self._mixed(*latent_heads(self, x, lambda rows: rotate(rows, self.variant)), mask, x)
        q = self._split(self.q(x), self.num_heads)  # (B, H, T, dh)
        k = self._split(self.k(x), self.kv_heads)  # (B, Hkv, T, dh)
        v = self._split(self.v(x), self.kv_heads)  # (B, Hkv, T, dh)
        if self.variant.qk_norm != "none":
            q, k = self.normalized(q, k)
        if self.variant.positions == "rotary":
            q = rotate(q, self.variant)
            k = rotate(k, self.variant)
        served = self.num_heads // self.kv_heads
        k = k.repeat_interleave(served, dim=1)  # (B, H, T, dh)
        v = v.repeat_interleave(served, dim=1)  # (B, H, T, dh)
        return self._mixed(q, k, v, mask, x)

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, x: Tensor) -> Tensor:
        """Attend with queries, keys and values (B, H, T, dh) of x, and put the heads together: → (B, T, D)."""
        q = unscaled_queries(q, self.variant)  # (B, H, T, dh)
        if self.variant.window or self.variant.positions in {"alibi", "relative"}:
            mask = combine_masks(mask, self.variant_mask(x))  # (…, T, T)
        if self.variant.score_cap or self.sinks is not None:
            return self._shaped(q, k, v, mask, x)
        if self.kernel is not None:
            return self._merged(self.kernel(self, q, k, v, mask), x)
        if self.causal:
            mask = combine_masks(mask, causal_mask(x.shape[1], device=x.device))  # (…, T, T)
        heads = scaled_dot_product_attention(q, k, v, mask)  # (B, H, T, dh)
        if self.weight_dropout > 0.0 and self.training:
            heads = attention_with_dropout(q, k, v, mask, self.weight_dropout)  # (B, H, T, dh)
        y = heads.transpose(1, 2).flatten(2)  # (B, T, H·dh)
        if self.output_gate is not None:
            y = gated(y, self.output_gate(x))  # (B, T, H·dh)
        if self.out is not None:
            y = self.out(y)  # (B, T, D)
        dropped: Tensor = self.dropout(y)
        return dropped

    def _split(self, rows: Tensor, heads: int) -> Tensor:
        """Give each head its consecutive share of the features: (B, T, h·dh) → (B, h, T, dh)."""
        return rows.reshape(*rows.shape[:-1], heads, self.head_width).transpose(1, 2)

    def normalized(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, T, dh) and keys (B, Hkv, T, dh), after their norms."""
        if self.variant.qk_norm == "heads":
            return self.q_norm(q), self.k_norm(k)
        rows = (self.q_norm(q.transpose(1, 2).flatten(2)), self.k_norm(k.transpose(1, 2).flatten(2)))  # (B, T, h·dh)
        return self._split(rows[0], self.num_heads), self._split(rows[1], self.kv_heads)

    def sink_logits(self) -> Tensor | None:
        """Return the sink of each head, (H,); None where there are none."""
        return None if self.sinks is None else self.sinks["weight"]

    def bias(self, queries: int, keys: int) -> Tensor:
        """Return what relative positions add to the scores of the last so many positions: (H, Tq, Tk)."""
        assert self.relative is not None
        return relative_bias(self.relative, queries, keys, self.variant, causal=self.causal_bias)

    def variant_mask(self, x: Tensor) -> Tensor | None:
        """Return what the variant hides from x (B, T, D) and adds to its scores: (T, T) or (H, T, T)."""
        length = x.shape[1]
        mask = variant_mask(length, length, self.num_heads, self.variant, causal=self.causal, device=x.device)
        return mask if self.relative is None else combine_masks(mask, self.bias(length, length))

    def _shaped(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, x: Tensor) -> Tensor:
        """Attend as `forward` does, with capped scores or sinks: (B, H, T, dh) each, and x → (B, T, D)."""
        seen = combine_masks(mask, causal_mask(q.shape[2], device=q.device)) if self.causal else mask  # (…, T, T)
        return self._merged(shaped_attention(q, k, v, seen, self.variant.score_cap, self.sink_logits()), x)

    def _merged(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Put the heads side by side again, behind the gate that x opens: (B, H, T, dh), (B, T, D) → (B, T, D)."""
        rows = mixed.transpose(1, 2).flatten(2)  # (B, T, H·dh)
        if self.output_gate is not None:
            rows = gated(rows, self.output_gate(x))  # (B, T, H·dh)
        if self.out is not None:
            rows = self.out(rows)  # (B, T, D)
        given: Tensor = self.dropout(rows)
        return given

    def _check_heads(self) -> None:
        if self.num_heads % self.kv_heads:
            raise SizeError("num_heads", self.num_heads, f"a multiple of kv_heads = {self.kv_heads}")
        turning, what = self.head_width, "the width of a head"
        if self.variant.has_latent and self.variant.positions == "rotary":
            sizes = {"d_model": self.d_model, "num_heads": self.num_heads, "head_width": self.head_width}
            turning, what = evaluate(self.variant.rotary_width, **sizes), "the width that rotates"
        if not turns_whole_pairs(turning, self.variant):
            wanted = "an even number, since rotary positions turn pairs"
            wanted = wanted if turning % 2 else "more: too few features would be rotated"
            raise SizeError(what, turning, wanted)
        if not self.variant.output_projection and self.num_heads * self.head_width != self.d_model:
            width = self.num_heads * self.head_width
            raise SizeError("d_model", self.d_model, f"the heads' width {width}: there is no output projection")


def _check_mask(mask: Tensor | None) -> None:
    if mask is not None and mask.ndim == 3 and mask.shape[0] > 1:
        raise ShapeError("the mask's shape", tuple(mask.shape), "(T, T) or (batch, 1, T, T)")
