"""What a stub must compute, in words and shapes: the canonical choices, which one gets without declaring anything."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

__all__ = ["CHOICES", "DEFINITIONS", "defined"]

_NORM = "(x - mean) / √(variance + 1e-5) · γ + β over the features, variance with divisor d_model"
_ATTENTION = (
    "q, k, v: one linear map each, d_model → d_model, without biases; head h takes features h·d … (h+1)·d - 1, with "
    "d = d_model / num_heads. Each head: softmax(q kᵀ / √d) v, each position seeing itself and earlier ones if causal. "
    "The heads side by side go through a last map d_model → d_model without a bias."
)

DEFINITIONS: Mapping[str, str] = {
    "scaled_dot_product_attention": "softmax(q kᵀ / √dk + mask) v; the softmax is over the keys.",
    "SelfAttention": (
        "q = x Wq, k = x Wk, v = x Wv, linear maps without biases to d_k, d_k and d_v (d_model unless given); then "
        "softmax(q kᵀ / √d_k) v, each position seeing itself and earlier ones if causal. No output projection."
    ),
    "MultiHeadAttention": _ATTENTION,
    "FeedForward": (
        "a linear map d_model → d_ff, GELU x·Φ(x) (the exact one, not tanh), a linear map back; both with biases."
    ),
    "PositionalEncoding": (
        "x plus sinusoids: row p, counted from 0, has sin(p / 10000^(2i/d_model)) in feature 2i and the cosine of the "
        "same angle in feature 2i + 1. No parameters, and x is not scaled."
    ),
    "TransformerBlock": (
        "pre-norm: x = x + attention(norm1(x)), then x = x + feed_forward(norm2(x)). Each norm is a LayerNorm: "
        f"{_NORM}."
    ),
    "TinyTransformerLM": (
        "rows of a table (vocab_size, d_model), not scaled, plus sinusoids; num_layers blocks; a last LayerNorm; a "
        "linear map to vocab_size logits, with or without a bias, with weights of its own (not the table's)."
    ),
}  # fmt: skip
"""The exports of profile core by name."""

CHOICES: Mapping[str, object] = {
    "norm": "layernorm", "norm_eps": 1e-5, "norm_bias": True, "norm_deviation": "biased", "placement": "pre",
    "activation": "gelu", "gated": False, "qkv_bias": False, "output_projection": True, "output_bias": False,
    "ffn_bias": True, "kv_heads": "num_heads", "head_width": "d_model // num_heads", "positions": "sinusoidal",
    "sinusoid_layout": "interleaved", "sinusoid_frequencies": "vaswani", "position_offset": 0, "positions_scale": False,
    "embedding_scale": False, "embedding_norm": False, "final_norm": True, "tied": False, "head_bias": True,
    "log_probabilities": False,
}  # fmt: skip
"""The choices that these words describe; a test compares them with the canonical variant."""

_WIDTH = 110


def defined(export: str) -> str:
    """Return the lines `Computes: …` for a docstring; empty for other profiles' exports."""
    text = DEFINITIONS.get(export, "")
    return "\n".join(textwrap.wrap(f"Computes:  {text}", _WIDTH, subsequent_indent=" " * 11)) if text else ""
