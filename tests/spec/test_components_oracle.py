"""The registry of components: shapes and numbers of parameters, arguments, and what each definition is called with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from conformkit.spec.block import transformer_block
from conformkit.spec.components import COMPONENTS, GENERATE, SEVERAL_NAMES, Parameter, component
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.variants import CANONICAL

BIASED = {"qkv_bias": True, "output_bias": True}
GPT = {"d_model": 64, "num_heads": 4, "kv_heads": 4, "head_width": 16, "d_ff": 256}
TINY = {"d_model": 4, "num_heads": 2, "kv_heads": 2, "head_width": 2, "d_ff": 8}
WIDE = {"d_model": 512, "num_heads": 8, "kv_heads": 8, "head_width": 64}


@pytest.mark.parametrize(
    ("component", "sizes", "changes", "want"),
    [
        ("MultiHeadAttention", GPT, BIASED, 16_640),
        ("MultiHeadAttention", GPT, {}, 4 * 64 * 64),
        ("MultiHeadAttention", WIDE, {}, 1_048_576),
        ("MultiHeadAttention", WIDE, BIASED, 1_050_624),
        ("MultiHeadAttention", {**WIDE, "kv_heads": 2}, {}, 2 * 512 * 512 + 2 * 128 * 512),
        ("MultiHeadAttention", WIDE, {"output_projection": False}, 3 * 512 * 512),
        ("FeedForward", {"d_model": 768, "d_ff": 3072}, {}, 4_722_432),
        ("FeedForward", {"d_model": 768, "d_ff": 3072}, {"ffn_bias": False}, 2 * 768 * 3072),
        ("FeedForward", {"d_model": 8, "d_ff": 20}, {"gated": True}, 3 * 160 + 2 * 20 + 8),
        ("FeedForward", {"d_model": 64, "d_ff": 256}, {}, 33_088),
        ("TransformerBlock", GPT, BIASED, 49_984),
        ("TransformerBlock", GPT, {}, 16_384 + 33_088 + 256),
        ("TransformerBlock", TINY, {}, 156),
        ("TransformerBlock", TINY, {"norm": "rmsnorm"}, 148),
        ("TransformerBlock", TINY, {"norm_bias": False}, 148),
        ("PositionalEncoding", {"d_model": 512, "max_len": 512}, {}, 0),
        ("PositionalEncoding", {"d_model": 512, "max_len": 512}, {"positions": "learned"}, 262_144),
        ("PositionalEncoding", {"d_model": 512, "max_len": 512}, {"positions": "rotary"}, 0),
        ("SelfAttention", {"d_model": 6, "d_k": 4, "d_v": 5}, {}, 6 * (4 + 4 + 5)),
        ("SelfAttention", {"d_model": 6, "d_k": 4, "d_v": 5}, {"qkv_bias": True}, 6 * 13 + 13),
        ("ScaledDotProductAttention", {}, {}, 0),
    ],
)
def test_numbers_of_parameters(component: str, sizes: dict[str, Any], changes: dict[str, Any], want: int) -> None:
    parameters = COMPONENTS[component].parameters(sizes, CANONICAL.but(**changes))
    assert sum(math.prod(p.shape) for p in parameters.values()) == want


def test_shapes_of_a_block() -> None:
    sizes = {"d_model": 6, "num_heads": 4, "kv_heads": 2, "head_width": 5, "d_ff": 9}
    found = {n: p.shape for n, p in COMPONENTS["TransformerBlock"].parameters(sizes, CANONICAL.but(**BIASED)).items()}
    assert found == {
        "attention.q.weight": (20, 6), "attention.q.bias": (20,),
        "attention.k.weight": (10, 6), "attention.k.bias": (10,),
        "attention.v.weight": (10, 6), "attention.v.bias": (10,),
        "attention.out.weight": (6, 20), "attention.out.bias": (6,),
        "feed_forward.up.weight": (9, 6), "feed_forward.up.bias": (9,),
        "feed_forward.down.weight": (6, 9), "feed_forward.down.bias": (6,),
        "norm1.weight": (6,), "norm1.bias": (6,), "norm2.weight": (6,), "norm2.bias": (6,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("axes", "want"), [("m", (3,)), ("f m", (5, 3)), ("(h d) m", (8, 3)), ("m (h d)", (3, 8)), ("(s h d)", (24,))]
)
def test_the_axes_of_a_group_are_multiplied(axes: str, want: tuple[int, ...]) -> None:
    assert Parameter(axes, {"m": 3, "f": 5, "h": 2, "d": 4, "s": 3}).shape == want


def test_arguments_are_those_of_the_contract() -> None:
    written = {
        component.export: [
            a.name if a.required else f"{a.name}={a.default}" for a in component.arguments
        ] for component in COMPONENTS.values()
    }  # fmt: skip
    assert written == {
        "scaled_dot_product_attention": [],
        "SelfAttention": ["d_model", "d_k=None", "d_v=None", "causal=True"],
        "MultiHeadAttention": ["d_model", "num_heads", "dropout=0.0", "causal=True"],
        "FeedForward": ["d_model", "d_ff", "dropout=0.0"],
        "PositionalEncoding": ["d_model", "max_len"],
        "TransformerBlock": ["d_model", "num_heads", "d_ff", "dropout=0.0", "causal=True"],
        "TinyTransformerLM": ["vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size", "dropout=0.0"],
    }
    assert [a.name for a in GENERATE] == [
        "ids",
        "max_new_tokens",
        "temperature",
        "top_k",
        "top_p",
        "eos_id",
        "use_cache",
    ]


def test_core_requires_five_components() -> None:
    required = [c.export for c in COMPONENTS.values() if c.required]
    assert required == [
        "scaled_dot_product_attention",
        "MultiHeadAttention",
        "PositionalEncoding",
        "TransformerBlock",
        "TinyTransformerLM",
    ]


def test_definitions_get_their_sizes_and_variant() -> None:
    random = np.random.default_rng(5)
    sizes = {"d_model": 6, "num_heads": 3, "kv_heads": 1, "head_width": 2, "d_ff": 7, "causal": False}
    variant = CANONICAL.but(activation="relu", kv_heads="1", placement="post")
    x = random.normal(size=(2, 4, 6))
    for name in ("FeedForward", "TransformerBlock"):
        component = COMPONENTS[name]
        weights = {n: random.normal(size=p.shape) for n, p in component.parameters(sizes, variant).items()}
        found = component.forward(weights, {"x": x}, sizes, variant)
        if name == "FeedForward":
            want = feed_forward(weights, x, variant=variant)
        else:
            want = transformer_block(weights, x, num_heads=3, kv_heads=1, causal=False, variant=variant)
        np.testing.assert_array_equal(found, want)


def test_what_a_component_is_follows_from_its_arguments() -> None:
    """Catches a model that is taken for a decoder because its name says so, and one that is not."""
    known = [component(name) for name in (*COMPONENTS, *SEVERAL_NAMES)]
    assert [one.name for one in known if one.is_language_model] == ["TinyTransformerLM"]
    assert [one.name for one in known if one.decodes] == ["TinyTransformerLM", "Transformer"]
