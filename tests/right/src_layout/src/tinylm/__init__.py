"""Lazy exports by __getattr__."""

import importlib

_WHERE = {
    "scaled_dot_product_attention": ".layers.attention",
    "SelfAttention": ".layers.attention",
    "MultiHeadAttention": ".layers.attention",
    "FeedForward": ".layers.ffn",
    "PositionalEncoding": ".layers.positions",
    "TransformerBlock": ".block",
    "TinyTransformerLM": ".model",
}
__all__ = list(_WHERE)


def __getattr__(name):
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name], __name__), name)
    raise AttributeError(name)
