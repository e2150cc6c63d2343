"""Transformer layers in which the caller always says who sees whom.

Masks are boolean and True means HIDDEN, shape (T, T) or (B, 1, T, T).
"""
from .layers import FeedForward, MultiHeadSelfAttention, PositionalEncoding, TransformerLayer
from .masks import future_mask, nothing_hidden
