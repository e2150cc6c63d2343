"""My transformer for the capstone."""

from .attention import MultiHeadAttention, SelfAttention, scaled_dot_product_attention
from .layers import FeedForward, PositionalEncoding, TransformerBlock
from .model import TinyTransformerLM

__all__ = [
    "FeedForward",
    "MultiHeadAttention",
    "PositionalEncoding",
    "SelfAttention",
    "TinyTransformerLM",
    "TransformerBlock",
    "scaled_dot_product_attention",
]
