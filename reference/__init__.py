"""The bundled reference: the contract's components in PyTorch, written to be read beside the spec."""

from __future__ import annotations

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.block import TransformerBlock
from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.masks import causal_mask, padding_mask
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import LayerNorm, RMSNorm
from conformkit.reference.positional_encoding import PositionalEncoding
from conformkit.reference.self_attention import SelfAttention

__all__ = [
    "FeedForward",
    "LayerNorm",
    "MultiHeadAttention",
    "PositionalEncoding",
    "RMSNorm",
    "SelfAttention",
    "TinyTransformerLM",
    "TransformerBlock",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
]
