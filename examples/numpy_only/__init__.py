"""A tiny transformer in NumPy alone: forward passes and sampling, no training (and so no dropout)."""

from .attention import MultiHeadAttention, SelfAttention, scaled_dot_product_attention
from .layers import FeedForward, LayerNorm, PositionalEncoding, TransformerBlock
from .model import TinyTransformerLM

__all__ = [
    "FeedForward",
    "LayerNorm",
    "MultiHeadAttention",
    "PositionalEncoding",
    "SelfAttention",
    "TinyTransformerLM",
    "TransformerBlock",
    "scaled_dot_product_attention",
]
