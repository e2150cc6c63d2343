"""The components of the contract: how each is constructed and called, its parameters, its oracle."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.block import transformer_block
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import Array, Weights
from conformkit.spec.model import tiny_transformer_lm
from conformkit.spec.multi_head_attention import multi_head_attention
from conformkit.spec.positional_encoding import positional_encoding
from conformkit.spec.self_attention import self_attention
from conformkit.spec.variants import Variant

__all__ = ["COMPONENTS", "GENERATE", "Argument", "Component", "Parameter", "Sizes"]

Sizes = Mapping[str, Any]
"""Constructor arguments by name (`d_model`, `num_heads`, `causal`, …), with kv_heads and head_width worked out."""
Inputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the contract; `required` when it has no default."""

    name: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A canonical parameter: named axes in the manner of einops, and their sizes in one instance."""

    axes: str
    sizes: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents: those of a parenthesized group are multiplied."""
        groups = re.findall(r"\(([^)]*)\)|(\w+)", self.axes)
        return tuple(math.prod(self.sizes[a] for a in (group or single).split()) for group, single in groups)


@dataclass(frozen=True, slots=True)
class Component:
    """What a Protocol describes.

    `inputs` are the names of the call's arrays; `parameters` gives the canonical parameters of an instance, `forward`
    the oracle.
    """

    name: str
    export: str
    prefix: str
    required: bool
    arguments: tuple[Argument, ...]
    inputs: tuple[str, ...]
    parameters: Callable[[Sizes, Variant], dict[str, Parameter]]
    forward: Callable[[Weights, Inputs, Sizes, Variant], Array]


def _matrix(out: str, into: str, **sizes: int) -> Parameter:
    return Parameter(f"{out} {into}", sizes)


def _linear(name: str, weight: Parameter, *, bias: bool) -> dict[str, Parameter]:
    out = re.match(r"\([^)]*\)|\w+", weight.axes)
    assert out
    return {f"{name}.weight": weight} | ({f"{name}.bias": Parameter(out[0], weight.sizes)} if bias else {})


def _self_attention(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    d, widths = sizes["d_model"], (sizes["d_k"], sizes["d_k"], sizes["d_v"])
    found: dict[str, Parameter] = {}
    for name, width in zip("qkv", widths, strict=True):
        found |= _linear(name, _matrix("d", "m", d=width, m=d), bias=variant.qkv_bias)
    return found


def _multi_head(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    m, width, heads, kv_heads = (sizes[n] for n in ("d_model", "head_width", "num_heads", "kv_heads"))
    found: dict[str, Parameter] = {}
    for name, own in zip("qkv", (heads, kv_heads, kv_heads), strict=True):
        found |= _linear(name, _matrix("(h d)", "m", h=own, d=width, m=m), bias=variant.qkv_bias)
    if variant.output_projection:
        found |= _linear("out", _matrix("m", "(h d)", h=heads, d=width, m=m), bias=variant.output_bias)
    return found


def _feed_forward(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    m, f = sizes["d_model"], sizes["d_ff"]
    found: dict[str, Parameter] = {}
    for name in ("gate", "up") if variant.gated else ("up",):
        found |= _linear(name, _matrix("f", "m", f=f, m=m), bias=variant.ffn_bias)
    return found | _linear("down", _matrix("m", "f", f=f, m=m), bias=variant.ffn_bias)


def _norm(name: str, width: int, variant: Variant) -> dict[str, Parameter]:
    vector = Parameter("m", {"m": width})
    has_bias = variant.norm == "layernorm" and variant.norm_bias
    return {f"{name}.weight": vector} | ({f"{name}.bias": vector} if has_bias else {})


def _positions(length: str) -> Callable[[Sizes, Variant], dict[str, Parameter]]:
    def parameters(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
        if variant.positions != "learned":
            return {}
        return {"positions.weight": _matrix("t", "m", t=sizes[length], m=sizes["d_model"])}

    return parameters


def _within(prefix: str, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    return {f"{prefix}.{name}": parameter for name, parameter in parameters.items()}


def _block(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    return (
        _within("attention", _multi_head(sizes, variant))
        | _within("feed_forward", _feed_forward(sizes, variant))
        | _norm("norm1", sizes["d_model"], variant)
        | _norm("norm2", sizes["d_model"], variant)
    )


def _model(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    v, m = sizes["vocab_size"], sizes["d_model"]
    found = {"embedding.weight": _matrix("v", "m", v=v, m=m)} | _positions("block_size")(sizes, variant)
    if variant.embedding_norm:
        found |= _norm("embedding_norm", m, variant)
    for layer in range(sizes["num_layers"]):
        found |= _within(f"blocks.{layer}", _block(sizes, variant))
    if variant.final_norm:
        found |= _norm("norm", m, variant)
    if not variant.tied:
        found["head.weight"] = _matrix("v", "m", v=v, m=m)
    if variant.head_bias:
        found["head.bias"] = Parameter("v", {"v": v})
    return found


def _no_parameters(_sizes: Sizes, _variant: Variant) -> dict[str, Parameter]:
    return {}


def _heads(sizes: Sizes) -> dict[str, Any]:
    return {"num_heads": sizes["num_heads"], "kv_heads": sizes["kv_heads"]}


_DROPOUT = Argument("dropout", 0.0)
_CAUSAL = Argument("causal", default=True)


def _required(*names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name, required=True) for name in names)


COMPONENTS: Mapping[str, Component] = {
    component.name: component
    for component in (
        Component(
            "ScaledDotProductAttention", "scaled_dot_product_attention", "SDPA", True, (), ("q", "k", "v", "mask"),
            _no_parameters,
            lambda _w, i, _s, _v: scaled_dot_product_attention(i["q"], i["k"], i["v"], i.get("mask")),
        ),
        Component(
            "SelfAttention", "SelfAttention", "SA", False,
            (*_required("d_model"), Argument("d_k"), Argument("d_v"), _CAUSAL), ("x",), _self_attention,
            lambda w, i, s, _v: self_attention(w, i["x"], causal=s["causal"]),
        ),
        Component(
            "MultiHeadAttention", "MultiHeadAttention", "MHA", True,
            (*_required("d_model", "num_heads"), _DROPOUT, _CAUSAL), ("x",), _multi_head,
            lambda w, i, s, v: multi_head_attention(w, i["x"], **_heads(s), causal=s["causal"], variant=v),
        ),
        Component(
            "FeedForward", "FeedForward", "FFN", False,
            (*_required("d_model", "d_ff"), _DROPOUT), ("x",), _feed_forward,
            lambda w, i, _s, v: feed_forward(w, i["x"], variant=v),
        ),
        Component(
            "PositionalEncoding", "PositionalEncoding", "PE", True,
            _required("d_model", "max_len"), ("x",), _positions("max_len"),
            lambda w, i, _s, v: positional_encoding(w, i["x"], variant=v),
        ),
        Component(
            "TransformerBlock", "TransformerBlock", "BLOCK", True,
            (*_required("d_model", "num_heads", "d_ff"), _DROPOUT, _CAUSAL), ("x",), _block,
            lambda w, i, s, v: transformer_block(w, i["x"], **_heads(s), causal=s["causal"], variant=v),
        ),
        Component(
            "TinyTransformerLM", "TinyTransformerLM", "LM", True,
            (*_required("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size"), _DROPOUT),
            ("ids",), _model,
            lambda w, i, s, v: tiny_transformer_lm(
                w, i["ids"], **_heads(s), num_layers=s["num_layers"], variant=v
            ),
        ),
    )
}  # fmt: skip
"""The contract's components by name, in the order in which one builds them."""

GENERATE: tuple[Argument, ...] = (
    *_required("ids", "max_new_tokens"),
    Argument("temperature", 1.0),
    Argument("top_k"),
    Argument("top_p"),
    Argument("eos_id"),
    Argument("use_cache", default=False),
)
"""The arguments of `TinyTransformerLM.generate`; those from `eos_id` on are of profile lm."""
