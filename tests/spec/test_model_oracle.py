"""The oracle of the language model, against hand values and against loops over rows, positions, heads and features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from conformkit.spec.arrays import Array
from conformkit.spec.components import COMPONENTS
from conformkit.spec.model import tiny_transformer_lm
from conformkit.spec.variants import CANONICAL, Variant

MODEL = COMPONENTS["TinyTransformerLM"]
Row = list[float]


def sizes(variant: Variant = CANONICAL, **changes: int) -> dict[str, Any]:
    found = {"vocab_size": 7, "d_model": 12, "num_heads": 2, "num_layers": 2, "d_ff": 9, "block_size": 6} | changes
    width = found["d_model"] // found["num_heads"]
    kv_heads = found["num_heads"] // 2 if variant.kv_heads == "num_heads // 2" else found["num_heads"]
    return {"head_width": width, "kv_heads": kv_heads, "dropout": 0.0, **found}


def count(variant: Variant = CANONICAL, **changes: int) -> int:
    return sum(math.prod(p.shape) for p in MODEL.parameters(sizes(variant, **changes), variant).values())


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, (107_969, 808_001, 26_971)),
        ({"final_norm": False}, (107_841, 807_745, None)),
        ({"head_bias": False}, (107_904, None, None)),
        ({"tied": True, "head_bias": False}, (103_744, 799_616, 26_080)),
    ],
)
def test_parameter_counts_of_known_sizes(changes: dict[str, bool], want: tuple[int | None, ...]) -> None:
    known = (
        {"vocab_size": 65, "d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 256},
        {"vocab_size": 65, "d_model": 128, "num_heads": 4, "num_layers": 4, "d_ff": 512},
        {"vocab_size": 27, "d_model": 32, "num_heads": 4, "num_layers": 2, "d_ff": 128},
    )
    for chosen, number in zip(known, want, strict=True):
        if number is not None:
            assert count(CANONICAL.but(**changes), **chosen) == number


def test_parameter_count_without_output_projection() -> None:
    plain = CANONICAL.but(output_projection=False, norm="rmsnorm", final_norm=False, head_bias=False)
    known = {"vocab_size": 500, "d_model": 128, "num_heads": 1, "num_layers": 2, "d_ff": 512}
    assert count(plain, **known) == 490_240
    assert count(plain.but(head_bias=True), **known) == 490_740
    assert count(plain.but(final_norm=True), **known) == 490_240 + 128


def test_learned_positions_count_one_row_a_position() -> None:
    learned = CANONICAL.but(positions="learned")
    assert count(learned, block_size=40) - count(learned, block_size=6) == 34 * 12
    assert count(block_size=40) == count(block_size=6)


def test_a_model_of_no_blocks_worked_by_hand() -> None:
    # D = 2. Position 0 adds (0, 1): (1, -1) + (0, 1) = (1, 0), normalized (1, -1) up to eps; the head: 3 x₁ + x₂ + ½.
    weights = {
        "embedding.weight": np.array([[1.0, -1.0], [2.0, 2.0]]),
        "norm.weight": np.array([1.0, 2.0]),
        "norm.bias": np.array([0.0, 10.0]),
        "head.weight": np.array([[3.0, 1.0], [0.0, 0.0]]),
        "head.bias": np.array([0.5, -0.25]),
    }
    got = tiny_transformer_lm(weights, np.array([[0]]), num_heads=1, kv_heads=1, num_layers=0, variant=CANONICAL)
    shrunk = 0.5 / math.sqrt(0.25 + 1e-5)
    np.testing.assert_allclose(got, [[[3 * shrunk + (10 - 2 * shrunk) + 0.5, -0.25]]], rtol=1e-12)


def test_embeddings_are_scaled_before_positions_are_added() -> None:
    variant = CANONICAL.but(embedding_scale=True, final_norm=False, head_bias=False)
    weights = {"embedding.weight": np.array([[3.0, 5.0, 7.0, 9.0]]), "head.weight": np.eye(4)}
    ids = np.zeros((1, 2), np.int64)
    got = tiny_transformer_lm(weights, ids, num_heads=1, kv_heads=1, num_layers=0, variant=variant)
    second: Row = [6 + math.sin(1), 10 + math.cos(1), 14 + math.sin(0.01), 18 + math.cos(0.01)]
    np.testing.assert_allclose(got, [[[6.0, 11.0, 14.0, 19.0], second]], rtol=1e-12)


# -- one number at a time ----------------------------------------------------------------------------------------------


def plus(one: Row, other: Row) -> Row:
    return [a + b for a, b in zip(one, other, strict=True)]


def linear(weights: Mapping[str, Array], name: str, x: Row) -> Row:
    matrix, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    return [
        sum(float(matrix[o, i]) * x[i] for i in range(len(x))) + (float(bias[o]) if bias is not None else 0.0)
        for o in range(matrix.shape[0])
    ]


def norm(weights: Mapping[str, Array], name: str, x: Row, variant: Variant) -> Row:
    mean = 0.0 if variant.norm == "rmsnorm" else sum(x) / len(x)
    centered = [value - mean for value in x]
    square = sum(value * value for value in centered)
    if variant.norm_deviation == "sample":
        root = math.sqrt(square / (len(x) - 1)) + variant.norm_eps
    else:
        root = math.sqrt(square / len(x) + variant.norm_eps)
    bias = weights.get(f"{name}.bias", np.zeros(len(x)))
    return [
        value / root * float(g) + float(b)
        for value, g, b in zip(centered, weights[f"{name}.weight"], bias, strict=True)
    ]


def activation(x: float, variant: Variant) -> float:
    return {
        "relu": lambda: max(x, 0.0),
        "silu": lambda: x / (1.0 + math.exp(-x)),
        "gelu": lambda: x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))),
        "gelu_tanh": lambda: 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))),
    }[variant.activation]()


def feed(weights: Mapping[str, Array], at: str, x: Row, variant: Variant) -> Row:
    inner = linear(weights, f"{at}.up", x)
    if variant.gated:
        gate = linear(weights, f"{at}.gate", x)
        return linear(weights, f"{at}.down", [activation(g, variant) * u for g, u in zip(gate, inner, strict=True)])
    return linear(weights, f"{at}.down", [activation(u, variant) for u in inner])


def turned(x: Row, position: int, variant: Variant) -> Row:
    if variant.positions != "rotary":
        return x
    half, out = len(x) // 2, list(x)
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if variant.rotary_layout == "pairs" else (i, i + half)
        angle = position * variant.rotary_base ** (-2.0 * i / len(x))
        out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        out[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
    return out


def attend(weights: Mapping[str, Array], at: str, rows: list[Row], s: Mapping[str, Any], variant: Variant) -> list[Row]:
    q, k, v = ([linear(weights, f"{at}.{name}", x) for x in rows] for name in "qkv")
    d, shared = s["head_width"], s["num_heads"] // s["kv_heads"]
    out = []
    for t in range(len(rows)):
        mixed: Row = []
        for head in range(s["num_heads"]):
            own, theirs = slice(head * d, (head + 1) * d), slice(head // shared * d, (head // shared + 1) * d)
            query = turned(q[t][own], t, variant)
            scores = []
            for j in range(t + 1):
                key = turned(k[j][theirs], j, variant)
                scores.append(sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(d))
            powers = [math.exp(score - max(scores)) for score in scores]
            for feature in range(d):
                mixed.append(sum(powers[j] / sum(powers) * v[j][theirs][feature] for j in range(t + 1)))
        out.append(linear(weights, f"{at}.out", mixed) if variant.output_projection else mixed)
    return out


def positioned(weights: Mapping[str, Array], x: Row, position: int, variant: Variant) -> Row:
    if variant.positions == "learned":
        return plus(x, [float(w) for w in weights["positions.weight"][position]])
    if variant.positions != "sinusoidal":
        return x
    code = [0.0] * len(x)
    for i in range((len(x) + 1) // 2):
        angle = position / 10000.0 ** (2 * i / len(x))
        interleaved = variant.sinusoid_layout == "interleaved"
        code[2 * i if interleaved else i] = math.sin(angle)
        if 2 * i + 1 < len(x):
            code[2 * i + 1 if interleaved else (len(x) + 1) // 2 + i] = math.cos(angle)
    return plus(x, code)


def naive(weights: Mapping[str, Array], row: list[int], s: Mapping[str, Any], variant: Variant) -> list[Row]:
    scale = math.sqrt(s["d_model"]) if variant.embedding_scale else 1.0
    stream = [
        positioned(weights, [float(w) * scale for w in weights["embedding.weight"][token]], t, variant)
        for t, token in enumerate(row)
    ]
    if variant.embedding_norm:
        stream = [norm(weights, "embedding_norm", x, variant) for x in stream]
    for layer in range(s["num_layers"]):
        at = f"blocks.{layer}"
        if variant.placement == "pre":
            read = [norm(weights, f"{at}.norm1", x, variant) for x in stream]
            stream = [
                plus(x, y) for x, y in zip(stream, attend(weights, f"{at}.attention", read, s, variant), strict=True)
            ]
            read = [norm(weights, f"{at}.norm2", x, variant) for x in stream]
            stream = [
                plus(x, feed(weights, f"{at}.feed_forward", y, variant)) for x, y in zip(stream, read, strict=True)
            ]
        else:
            sums = [
                plus(x, y) for x, y in zip(stream, attend(weights, f"{at}.attention", stream, s, variant), strict=True)
            ]
            stream = [norm(weights, f"{at}.norm1", x, variant) for x in sums]
            sums = [plus(x, feed(weights, f"{at}.feed_forward", x, variant)) for x in stream]
            stream = [norm(weights, f"{at}.norm2", x, variant) for x in sums]
    if variant.final_norm:
        stream = [norm(weights, "norm", x, variant) for x in stream]
    head = {"head.weight": weights["embedding.weight" if variant.tied else "head.weight"]}
    if variant.head_bias:
        head["head.bias"] = weights["head.bias"]
    return [linear(head, "head", x) for x in stream]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="canonical"),
        pytest.param({"placement": "post", "activation": "relu", "final_norm": False}, id="post-norm"),
        pytest.param({"norm": "rmsnorm", "gated": True, "activation": "silu", "ffn_bias": False}, id="rmsnorm-swiglu"),
        pytest.param({"positions": "rotary", "kv_heads": "num_heads // 2"}, id="rotary-grouped"),
        pytest.param({"positions": "rotary", "rotary_layout": "halves", "rotary_base": 50.0}, id="rotary-halves"),
        pytest.param({"positions": "learned", "tied": True, "head_bias": False, "qkv_bias": True}, id="learned-tied"),
        pytest.param(
            {"embedding_scale": True, "embedding_norm": True, "sinusoid_layout": "halves"}, id="scaled-halves"
        ),
        pytest.param({"positions": "none", "output_projection": False, "activation": "gelu_tanh"}, id="no-projection"),
        pytest.param({"norm_deviation": "sample", "norm_eps": 1e-3, "output_bias": True}, id="sample-deviation"),
        pytest.param({"norm_bias": False, "norm_eps": 0.1}, id="no-norm-bias"),
    ],
)
def test_logits_are_those_of_one_number_at_a_time(changes: dict[str, Any]) -> None:
    variant = CANONICAL.but(**changes)
    s = sizes(variant)
    random = np.random.default_rng(11)
    weights = {
        name: random.normal(float(".weight" in name and "norm" in name), 0.6, parameter.shape)
        for name, parameter in MODEL.parameters(s, variant).items()
    }
    ids = random.integers(0, s["vocab_size"], (2, 5))
    got = MODEL.forward(weights, {"ids": ids}, s, variant)
    want = [naive(weights, row, s, variant) for row in ids.tolist()]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
