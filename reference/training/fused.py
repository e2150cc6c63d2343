"""The same model on PyTorch's own kernels: what the reference writes out as formulas, in one call each.

Attention by `scaled_dot_product_attention`, norms by `layer_norm` and `rms_norm`, activations by `gelu` and others.
Ids are not checked: on a GPU each call would wait for that. All parameters are those of the model it is made from:
training one trains the other.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.block import TransformerBlock
from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import LayerNorm, RMSNorm
from conformkit.reference.placements import arranged
from conformkit.reference.positional_encoding import LearnedPositions, LearnedPositionsFrom, SinusoidalPositions
from conformkit.reference.scores import capped
from conformkit.spec.variants import Variant

__all__ = ["FusedLM"]


class FusedLM(nn.Module):
    """A TinyTransformerLM made faster; it refuses nothing.

    Shapes: ids (B, T), int64, T at most block_size → logits (B, T, V)
    """

    def __init__(self, model: TinyTransformerLM) -> None:
        super().__init__()
        self.scale = model.scale
        self.embedding = model.embedding
        dtype = model.embedding.weight.dtype
        self.positions = _FusedPositions(model.positions, dtype)
        self.embedding_norm = _norm(model.embedding_norm)
        self.embedding_dropout = model.embedding_dropout
        self.blocks = nn.ModuleList(
            _FusedBlock(cast("TransformerBlock", block), model.block_size, dtype) for block in model.blocks
        )
        self.norm = _norm(model.norm)
        self.head = model.head
        self.log_probabilities, self.logit_cap = model.log_probabilities, model.logit_cap

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        x = self.embedding(ids) * self.scale  # (B, T, D)
        x = self.embedding_dropout(self.embedding_norm(self.positions(x)))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))  # (B, T, V)
        if self.logit_cap:
            logits = capped(logits, self.logit_cap)
        return logits.log_softmax(dim=-1) if self.log_probabilities else logits


class _FusedPositions(nn.Module):
    """Positions whose table is on the model's device, and of its type, from the start."""

    def __init__(self, positions: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        if isinstance(positions, LearnedPositions):
            self.weight = positions.weight
            self.first = positions.first if isinstance(positions, LearnedPositionsFrom) else 0
        elif isinstance(positions, SinusoidalPositions):
            self.register_buffer("table", positions.table.to(dtype, copy=True), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        length = x.shape[1]
        if "weight" in self._parameters:
            return x + self.weight[self.first : self.first + length]
        if "table" in self._buffers:
            return x + cast("Tensor", self.table)[:length]
        return x


class _FusedBlock(nn.Module):
    def __init__(self, block: TransformerBlock, block_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.pre = block.pre
        plain = not _is_shaped(block.attention.variant) and block.attention.kernel is None
        self.attention = _FusedAttention(block.attention, block_size, dtype) if plain else block.attention
        # a router and its networks are the reference's, and so are gates with limits
        mixture = block.feed_forward.experts is not None or block.feed_forward.limits is not None
        self.feed_forward = block.feed_forward if mixture else _FusedFeedForward(block.feed_forward)
        self.placement, self.layers = block.placement, block.layers
        self.norm1, self.norm2 = _norm(block.norm1), _norm(getattr(block, "norm2", None))
        if self.placement == "sandwich":
            for name in ("norm1_after", "norm2_after"):
                self.add_module(name, _norm(block.get_submodule(name)))
        for hook in block._forward_hooks.values():  # noqa: SLF001 - torch lists them nowhere else
            self.register_forward_hook(hook)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        if self.placement not in {"pre", "post"}:
            return arranged(self, x, self.attention)
        if self.pre:
            x = x + self.attention(self.norm1(x))
            x = x + self.feed_forward(self.norm2(x))
        else:
            x = self.norm1(x + self.attention(x))
            x = self.norm2(x + self.feed_forward(x))
        return x


def _is_shaped(variant: Variant) -> bool:
    """Whether a variant does to scores what no kernel of PyTorch does: then the reference's own attention is used."""
    turned = (
        not variant.score_scale
        or variant.sinks
        or variant.has_latent
        or variant.output_gate != "none"
        or variant.rotary_fraction != 1.0
        or variant.rotary_scaling != "none"
    )
    biased = variant.positions in {"alibi", "relative"}
    return bool(turned or variant.qk_norm != "none" or variant.score_cap or variant.window or biased)


class _FusedAttention(nn.Module):
    def __init__(self, attention: MultiHeadAttention, block_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = attention.q, attention.k, attention.v, attention.out
        self.dropout, self.weight_dropout = attention.dropout, attention.weight_dropout
        self.head_width, self.served = attention.head_width, attention.num_heads // attention.kv_heads
        self.rotary, self.pairs = attention.variant.positions == "rotary", attention.variant.rotary_layout == "pairs"
        if self.rotary:
            angles = _angles(block_size, self.head_width, attention.variant.rotary_base)  # (block_size, dh/2)
            self.register_buffer("cos", angles.cos().to(dtype), persistent=False)
            self.register_buffer("sin", angles.sin().to(dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position seeing itself and those before."""
        projected = (self.q(x), self.k(x), self.v(x))  # (B, T, H·dh), (B, T, Hkv·dh) twice
        q, k, v = (part.unflatten(-1, (-1, self.head_width)).transpose(1, 2) for part in projected)  # (B, h, T, dh)
        if self.rotary:
            q, k = self._rotated(q), self._rotated(k)
        if self.served > 1:
            k, v = k.repeat_interleave(self.served, dim=1), v.repeat_interleave(self.served, dim=1)
        rate = self.weight_dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)  # (B, H, T, dh)
        y = heads.transpose(1, 2).flatten(2)  # (B, T, H·dh)
        dropped: Tensor = self.dropout(y if self.out is None else self.out(y))
        return dropped

    def _rotated(self, x: Tensor) -> Tensor:
        """Turn pairs as `conformkit.reference.rotary.rotate` does, by angles that were worked out once."""
        cos, sin = (cast("Tensor", table)[: x.shape[-2]].to(x.dtype) for table in (self.cos, self.sin))  # (T, dh/2)
        a, b = (x[..., 0::2], x[..., 1::2]) if self.pairs else x.chunk(2, dim=-1)  # (B, H, T, dh/2) each
        turned = (a * cos - b * sin, a * sin + b * cos)
        return torch.stack(turned, dim=-1).flatten(-2) if self.pairs else torch.cat(turned, dim=-1)


def _angles(length: int, width: int, base: float) -> Tensor:
    """Return the angle of each position and pair, in float64 on the CPU: (length, width/2)."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width  # (dh/2,)
    return torch.arange(length, dtype=torch.float64, device="cpu")[:, None] / base**exponents


class _FusedFeedForward(nn.Module):
    def __init__(self, feed_forward: FeedForward) -> None:
        super().__init__()
        self.up, self.gate, self.down = feed_forward.up, feed_forward.gate, feed_forward.down
        self.dropout = feed_forward.dropout
        self.kind = feed_forward.activation.__name__

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        up = self.up(x)
        hidden = self._activated(up) if self.gate is None else self._activated(self.gate(x)) * up  # (B, T, F)
        y: Tensor = self.down(self.dropout(hidden))
        return y

    def _activated(self, x: Tensor) -> Tensor:
        if self.kind == "relu":
            return F.relu(x)
        if self.kind == "relu2":
            return F.relu(x).square()
        if self.kind == "quick_gelu":
            return x * torch.sigmoid(1.702 * x)
        if self.kind == "silu":
            return F.silu(x)
        return F.gelu(x, approximate="tanh" if self.kind == "gelu_tanh" else "none")


class _FusedLayerNorm(nn.Module):
    def __init__(self, norm: LayerNorm) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class _FusedRMSNorm(nn.Module):
    def __init__(self, norm: RMSNorm) -> None:
        super().__init__()
        self.weight, self.eps = norm.weight, norm.eps

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def _norm(norm: nn.Module | None) -> nn.Module:
    """Return the fused form of a norm; one with ε outside the root has none and stays, and no norm is the identity."""
    if norm is None:
        return nn.Identity()
    if isinstance(norm, RMSNorm):
        return _FusedRMSNorm(norm)
    return _FusedLayerNorm(norm) if isinstance(norm, LayerNorm) and not norm.outside else norm
