"""A small decoder-only transformer that refuses what does not fit.

Every refusal is an `InvalidArgument`, which is a `ValueError`.
"""

from __future__ import annotations

from ._attention import MultiHeadAttention, SelfAttention, scaled_dot_product_attention
from ._checks import InvalidArgument
from ._model import TinyTransformerLM
from ._parts import FeedForward, PositionalEncoding, TransformerBlock

__all__ = [
    "FeedForward",
    "InvalidArgument",
    "MultiHeadAttention",
    "PositionalEncoding",
    "SelfAttention",
    "TinyTransformerLM",
    "TransformerBlock",
    "scaled_dot_product_attention",
]
