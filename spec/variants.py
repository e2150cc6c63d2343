"""Legitimate choices that clauses depend on, and their canonical values.

A variant is declared in `conform.toml`; what is not declared is canonical. An implementation that differs from its
declared variant is wrong, however common its choice is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

__all__ = ["CANONICAL", "Variant", "choices"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One value for every choice.

    Expressions are over the constructor arguments of the contract (`d_model`, `num_heads`, …).
    """

    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: float = 1e-5
    norm_bias: bool = True
    """LayerNorm's β. RMSNorm never has one."""
    norm_deviation: Literal["biased", "sample"] = "biased"
    """biased: √(var + eps), divisor D. sample: std + eps, divisor D - 1."""
    placement: Literal["pre", "post"] = "pre"
    activation: Literal["gelu", "gelu_tanh", "relu", "silu"] = "gelu"
    gated: bool = False
    """down(act(gate x) * (up x)), as in SwiGLU."""
    qkv_bias: bool = False
    output_projection: bool = True
    output_bias: bool = False
    ffn_bias: bool = True
    kv_heads: str = "num_heads"
    """Number of key/value heads, an expression; fewer than `num_heads` is grouped-query attention."""
    head_width: str = "d_model // num_heads"
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    sinusoid_layout: Literal["interleaved", "halves"] = "interleaved"
    rotary_layout: Literal["pairs", "halves"] = "pairs"
    rotary_base: float = 10000.0
    embedding_scale: bool = False
    """Multiply embeddings by √d_model before positions are added."""
    embedding_norm: bool = False
    """A norm on the embeddings, after positions are added."""
    final_norm: bool = True
    tied: bool = False
    """The head shares the embedding matrix."""
    head_bias: bool = True

    def but(self, **changes: Any) -> Variant:
        """Return a copy with some choices changed."""
        return replace(self, **changes)

    def differences(self) -> dict[str, Any]:
        """Return the choices that are not canonical, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


CANONICAL = Variant()


def choices() -> dict[str, tuple[Any, ...] | type]:
    """Return, for each choice, the admissible values, or their type where they are open."""
    hints = get_type_hints(Variant)
    return {name: get_args(hint) or hint for name, hint in hints.items()}
