"""The components of the contract: how each is constructed and called, its parameters, its oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.block import transformer_block
from conformkit.spec.clauses import clauses_of
from conformkit.spec.component import DROPOUT, Argument, Component, Method, heads, required
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.model import tiny_transformer_lm
from conformkit.spec.multi_head_attention import multi_head_attention
from conformkit.spec.parameters import (
    Parameter,
    Sizes,
    block_norms,
    feed_forward_parameters,
    has_bias,
    linear_parameters,
    matrix,
    multi_head_parameters,
    norm_parameters,
    position_parameters,
    within,
)
from conformkit.spec.positional_encoding import first_position, input_scale, positional_encoding
from conformkit.spec.profiles import PROFILES
from conformkit.spec.self_attention import self_attention
from conformkit.spec.variants import BASES, CANONICAL, Variant

__all__ = [
    "COMPONENTS", "ENCODER_NAMES", "FURTHER", "GENERATE", "LOGITS", "PARTS", "PATHS", "SEQ2SEQ_NAMES", "SEVERAL_NAMES",
    "VIT_NAMES", "Argument", "Component", "Method", "Parameter", "Sizes", "base_of", "component", "components_of",
    "is_component",
]  # fmt: skip


def _self_attention(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    d, widths = sizes["d_model"], (sizes["d_k"], sizes["d_k"], sizes["d_v"])
    found: dict[str, Parameter] = {}
    for name, width in zip("qkv", widths, strict=True):
        found |= linear_parameters(name, matrix("d", "m", d=width, m=d), bias=has_bias(name, variant))
    return found


def _block(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    found = within("attention", multi_head_parameters(sizes, variant))
    found |= within("feed_forward", feed_forward_parameters(sizes, variant))
    for name in block_norms(variant):
        found |= norm_parameters(name, sizes["d_model"], variant)
    return found


def _model(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    v, m = sizes["vocab_size"], sizes["d_model"]
    found = {"embedding.weight": matrix("v", "m", v=v, m=m)} | position_parameters("block_size")(sizes, variant)
    if variant.embedding_norm:
        found |= norm_parameters("embedding_norm", m, variant)
    own = _block(sizes, variant)
    if variant.shares_table:
        found["relative.weight"] = own.pop("attention.relative.weight")
    for layer in range(sizes["num_layers"]):
        found |= within(f"blocks.{layer}", own)
    if variant.final_norm:
        found |= norm_parameters("norm", m, variant)
    if not variant.tied:
        found["head.weight"] = matrix("v", "m", v=v, m=m)
    if variant.head_bias:
        found["head.bias"] = Parameter("v", {"v": v})
    return found


def _no_parameters(_sizes: Sizes, _variant: Variant) -> dict[str, Parameter]:
    return {}


_CAUSAL = Argument("causal", default=True)

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
            (*required("d_model"), Argument("d_k"), Argument("d_v"), _CAUSAL), ("x",), _self_attention,
            lambda w, i, s, _v: self_attention(w, i["x"], causal=s["causal"]),
        ),
        Component(
            "MultiHeadAttention", "MultiHeadAttention", "MHA", True,
            (*required("d_model", "num_heads"), DROPOUT, _CAUSAL), ("x",), multi_head_parameters,
            lambda w, i, s, v: multi_head_attention(w, i["x"], **heads(s), causal=s["causal"], variant=v),
        ),
        Component(
            "FeedForward", "FeedForward", "FFN", False,
            (*required("d_model", "d_ff"), DROPOUT), ("x",), feed_forward_parameters,
            lambda w, i, _s, v: feed_forward(w, i["x"], variant=v),
            further=("PositionwiseFeedForward", "PositionWiseFeedForward", "FeedForwardNetwork"),
        ),
        Component(
            "PositionalEncoding", "PositionalEncoding", "PE", True,
            required("d_model", "max_len"), ("x",), position_parameters("max_len"),
            lambda w, i, s, v: positional_encoding(
                w, i["x"] * input_scale(v, s["d_model"]), variant=v, first=first_position(v, s)
            ),
            further=("SinusoidalPositionEncoding", "SinusoidalPositionalEncoding", "PositionEncoding"),
        ),
        Component(
            "TransformerBlock", "TransformerBlock", "BLOCK", True,
            (*required("d_model", "num_heads", "d_ff"), DROPOUT, _CAUSAL), ("x",), _block,
            lambda w, i, s, v: transformer_block(w, i["x"], **heads(s), causal=s["causal"], variant=v),
            depth=2,
        ),
        Component(
            "TinyTransformerLM", "TinyTransformerLM", "LM", True,
            (*required("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size"), DROPOUT),
            ("ids",), _model,
            lambda w, i, s, v: tiny_transformer_lm(
                w, i["ids"], **heads(s), num_layers=s["num_layers"], variant=v
            ),
            depth=5,
        ),
    )
}  # fmt: skip
"""The contract's components of profiles core and lm by name, in the order in which one builds them."""

PATHS: Mapping[str, Component] = {
    "ScaledDotProductAttention": replace(
        COMPONENTS["ScaledDotProductAttention"],
        export="fused_attention",
        required=False,
        further=("scaled_dot_product_attention",),
    ),
    "TinyTransformerLM": replace(COMPONENTS["TinyTransformerLM"], export="CausalLM", further=("TinyTransformerLM",)),
}
"""The contract's components of profile paths: the model and attention, or those with more arguments under own names."""

_FUNCTION = frozenset({"ScaledDotProductAttention"})
_SUBLAYERS = _FUNCTION | {"MultiHeadAttention", "CrossAttention", "FeedForward"}
_STACK = _SUBLAYERS | {"EncoderLayer", "DecoderLayer"}
PARTS: Mapping[str, frozenset[str]] = {
    "SelfAttention": _FUNCTION, "MultiHeadAttention": _FUNCTION, "CrossAttention": _FUNCTION,
    "TransformerBlock": _SUBLAYERS, "EncoderLayer": _SUBLAYERS, "DecoderLayer": _SUBLAYERS, "Encoder": _STACK,
    "Decoder": _STACK, "TinyTransformerLM": _SUBLAYERS | {"TransformerBlock", "PositionalEncoding", "TokenEmbedding"},
    "Transformer": _STACK | {"Encoder", "Decoder", "PositionalEncoding", "TokenEmbedding"},
    "BertModel": frozenset({"BertEmbeddings"}), "BertForPreTraining": frozenset({"BertEmbeddings", "BertModel"}),
    "VisionTransformer": frozenset({"PatchEmbedding"}),
}  # fmt: skip
"""The components of which a component is made, directly or not."""

SEQ2SEQ_NAMES = (
    "CrossAttention", "TokenEmbedding", "EncoderLayer", "DecoderLayer", "Encoder", "Decoder", "Transformer",
)  # fmt: skip
"""The components of profile seq2seq, described in the module seq2seq_components."""
ENCODER_NAMES = ("BertEmbeddings", "BertModel", "BertForPreTraining")
VIT_NAMES = ("PatchEmbedding", "VisionTransformer")
"""The components of profiles encoder and vit, described in the module encoder_components."""
LOGITS = frozenset({"TinyTransformerLM", "Transformer", "BertForPreTraining", "VisionTransformer"})
"""Components whose result may be called `logits` beside others that a call returns."""
SEVERAL_NAMES = (*SEQ2SEQ_NAMES, *ENCODER_NAMES, *VIT_NAMES)
"""The components whose calls may have several arrays."""


def component(name: str) -> Component:
    """Return a component of any profile. Raises KeyError."""
    if name in COMPONENTS:
        return COMPONENTS[name]
    if name in ENCODER_NAMES:
        return _encoder()[name]
    return _vit()[name] if name in VIT_NAMES else _seq2seq()[name]


def base_of(name: str) -> Variant:
    """Return the choices that are canonical for a component, or for a tool."""
    return BASES["encoder"] if name in ENCODER_NAMES else BASES["vit"] if name in VIT_NAMES else CANONICAL


def is_component(name: str) -> bool:
    """Whether a component of any profile has this name."""
    return name in COMPONENTS or name in SEVERAL_NAMES


def components_of(profile: str) -> Mapping[str, Component]:
    """Return the components of a profile, in the order in which one builds them."""
    if profile in {"core", "lm"}:
        return COMPONENTS
    if profile == "model":
        return {name: COMPONENTS[name] for name in COMPONENTS if name in (PROFILES[profile].about or ())}
    if profile in {"encoder", "vit"}:
        return _encoder() if profile == "encoder" else _vit()
    if profile == "paths":
        return PATHS
    every = {**COMPONENTS, **_seq2seq()}
    if profile == "seq2seq":
        return _seq2seq()
    about = {clause.component for clause in clauses_of(profile).values()}
    return {name: found for name, found in every.items() if name in about}


def _seq2seq() -> Mapping[str, Component]:
    from conformkit.spec.seq2seq_components import SEQ2SEQ  # noqa: PLC0415 - core does not need it

    return SEQ2SEQ


def _encoder() -> Mapping[str, Component]:
    from conformkit.spec.encoder_components import ENCODER  # noqa: PLC0415 - core does not need it

    return ENCODER


def _vit() -> Mapping[str, Component]:
    from conformkit.spec.encoder_components import IMAGES  # noqa: PLC0415 - core does not need it

    return IMAGES


GENERATE: tuple[Argument, ...] = (
    *required("ids", "max_new_tokens"),
    Argument("temperature", 1.0),
    Argument("top_k"),
    Argument("top_p"),
    Argument("eos_id"),
    Argument("use_cache", default=False),
)
"""The arguments of `TinyTransformerLM.generate`; those from `eos_id` on belong to profile lm."""
FURTHER: tuple[Argument, ...] = (
    Argument("min_p"),
    Argument("typical_p"),
    Argument("repetition_penalty", 1.0),
    Argument("presence_penalty", 0.0),
    Argument("frequency_penalty", 0.0),
    Argument("no_repeat_ngram_size"),
)
"""What `generate` may take besides, judged in profile lm where it is there: penalties and further filters."""
