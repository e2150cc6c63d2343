"""The oracle of the block compared with loops over plain numbers, and with values computed by hand."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.block import transformer_block
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL, Variant

Row = list[float]
ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "silu": lambda x: x / (1.0 + math.exp(-x)),
    "gelu": lambda x: x * (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0,
    "gelu_tanh": lambda x: x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))) / 2.0,
}


class Loops:
    """A block for one sequence, computed number by number."""

    def __init__(self, weights: dict[str, Any], sizes: dict[str, Any], variant: Variant) -> None:
        self.weights, self.sizes, self.variant = weights, sizes, variant

    def __call__(self, x: list[Row]) -> list[Row]:
        def added(one: list[Row], other: list[Row]) -> list[Row]:
            return [[a + b for a, b in zip(p, q, strict=True)] for p, q in zip(one, other, strict=True)]

        if self.variant.placement == "post":
            x = [self.norm("norm1", row) for row in added(x, self.attention(x))]
            return [self.norm("norm2", row) for row in added(x, [self.network(row) for row in x])]
        x = added(x, self.attention([self.norm("norm1", row) for row in x]))
        return added(x, [self.network(self.norm("norm2", row)) for row in x])

    def mapped(self, name: str, row: Row) -> Row:
        bias = self.weights.get(f"{name}.bias")
        matrix = self.weights[f"{name}.weight"]
        return [
            sum(w * v for w, v in zip(line, row, strict=True)) + (bias[i] if bias else 0.0)
            for i, line in enumerate(matrix)
        ]

    def norm(self, name: str, row: Row) -> Row:
        eps, gamma = self.variant.norm_eps, self.weights[f"{name}.weight"]
        if self.variant.norm == "rmsnorm":
            size = math.sqrt(sum(x * x for x in row) / len(row) + eps)
            return [x / size * g for x, g in zip(row, gamma, strict=True)]
        mean = sum(row) / len(row)
        squares = sum((x - mean) ** 2 for x in row)
        sample = self.variant.norm_deviation == "sample"
        size = math.sqrt(squares / (len(row) - 1)) + eps if sample else math.sqrt(squares / len(row) + eps)
        beta = self.weights.get(f"{name}.bias", [0.0] * len(row))
        return [(x - mean) / size * g + b for x, g, b in zip(row, gamma, beta, strict=True)]

    def network(self, row: Row) -> Row:
        act, up = ACTIVATIONS[self.variant.activation], self.mapped("feed_forward.up", row)
        if self.variant.gated:
            gate = self.mapped("feed_forward.gate", row)
            return self.mapped("feed_forward.down", [act(g) * u for g, u in zip(gate, up, strict=True)])
        return self.mapped("feed_forward.down", [act(u) for u in up])

    def turned(self, row: Row, position: int) -> Row:
        """One head's query or key, its pairs rotated."""
        if self.variant.positions != "rotary":
            return row
        found, width = list(row), len(row)
        for pair in range(width // 2):
            a, b = (2 * pair, 2 * pair + 1) if self.variant.rotary_layout == "pairs" else (pair, pair + width // 2)
            z = complex(row[a], row[b]) * cmath.exp(1j * position / self.variant.rotary_base ** (2 * pair / width))
            found[a], found[b] = z.real, z.imag
        return found

    def attention(self, x: list[Row]) -> list[Row]:
        width, served = self.sizes["head_width"], self.sizes["num_heads"] // self.sizes["kv_heads"]
        q, k, v = ([self.mapped(f"attention.{name}", row) for row in x] for name in "qkv")
        out = []
        for t in range(len(x)):
            merged: Row = []
            for head in range(self.sizes["num_heads"]):
                mine, theirs = head * width, head // served * width
                query = self.turned(q[t][mine : mine + width], t)
                seen = range(t + 1) if self.sizes["causal"] else range(len(x))
                scores = []
                for j in seen:
                    key = self.turned(k[j][theirs : theirs + width], j)
                    scores.append(sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(width))
                weights = [math.exp(score - max(scores)) for score in scores]
                total = sum(weights)
                for feature in range(theirs, theirs + width):
                    merged.append(sum(w * v[j][feature] for w, j in zip(weights, seen, strict=True)) / total)
            out.append(self.mapped("attention.out", merged) if self.variant.output_projection else merged)
        return out


VARIANTS = st.builds(
    CANONICAL.but,
    placement=st.sampled_from(["pre", "post"]), norm=st.sampled_from(["layernorm", "rmsnorm"]),
    norm_eps=st.sampled_from([1e-5, 1e-2]), norm_bias=st.booleans(),
    norm_deviation=st.sampled_from(["biased", "sample"]),
    activation=st.sampled_from(list(ACTIVATIONS)), gated=st.booleans(), ffn_bias=st.booleans(), qkv_bias=st.booleans(),
    output_projection=st.booleans(), output_bias=st.booleans(), positions=st.sampled_from(["sinusoidal", "rotary"]),
    rotary_layout=st.sampled_from(["pairs", "halves"]),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(VARIANTS, st.sampled_from([(1, 1), (2, 2), (2, 1), (3, 3), (4, 2)]), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_oracle_equals_loops_over_everything(
    variant: Variant, heads: tuple[int, int], causal: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sizes = {
        "num_heads": heads[0], "kv_heads": heads[1], "head_width": 2, "d_model": 2 * heads[0], "d_ff": 5,
        "causal": causal,
    }  # fmt: skip
    parameters = COMPONENTS["TransformerBlock"].parameters(sizes, variant)
    weights = {name: random.normal(size=p.shape) for name, p in parameters.items()}
    x = random.normal(size=(2, 3, 2 * heads[0]))
    found = transformer_block(weights, x, num_heads=heads[0], kv_heads=heads[1], causal=causal, variant=variant)
    loops = Loops({name: value.tolist() for name, value in weights.items()}, sizes, variant)
    np.testing.assert_allclose(found, [loops(sequence) for sequence in x.tolist()], rtol=1e-9, atol=1e-9)


X = np.array([[[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 1.0, 1.0]]])


def by_hand(*, causal: bool = True, open_units: bool = False, **changes: Any) -> Any:
    """Identity projections, two heads, a network that halves its input or, optionally, exposes its activation."""
    eye, variant = np.eye(4), CANONICAL.but(**changes)
    back = np.zeros((4, 4)) if open_units else -eye / 2
    weights = {f"attention.{name}.weight": eye for name in ("q", "k", "v", "out")} | {
        "feed_forward.up.weight": np.concatenate([eye, -eye]),
        "feed_forward.down.weight": np.concatenate([eye if open_units else eye / 2, back], axis=1),
        "norm1.weight": np.ones(4), "norm2.weight": np.ones(4),
    }  # fmt: skip
    return transformer_block(weights, X, num_heads=2, kv_heads=2, causal=causal, variant=variant)[0]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, [[1.670818, 4.012455, -0.670818, -3.012455], [-0.778275, 1.507711, 5.193144, -1.359642],
              [4.048676, -1.976900, 1.534341, 0.090616]]),
        ({"causal": False}, [[1.548334, 3.583221, -0.102792, -2.741473], [-0.438854, 1.150321, 5.105200, -1.299977],
                             [4.048676, -1.976900, 1.534341, 0.090616]]),
        ({"placement": "post"}, [[0.447213, 1.341638, -0.447213, -1.341638], [-0.713507, 0.144383, 1.570659, -1.001535],
                                 [1.140165, -1.282700, 0.793947, -0.651411]]),
        ({"norm": "rmsnorm"}, [[2.224742, 4.449483, 0, -2.224742], [0.592330, 2.667168, 5.659885, -0.070614],
                               [4.045122, 0.588312, 2.795460, 1.556480]]),
        ({"open_units": True}, [[1.748025, 4.562720, -0.593612, -2.462190], [-0.575395, 1.515795, 5.889679, -1.034767],
                                [4.650978, -1.438596, 1.564816, 0.146871]]),
        ({"open_units": True, "activation": "relu"}, [[1.894425, 4.683275, -0.447212, -2.341635]]),
        ({"open_units": True, "activation": "gelu_tanh"}, [[1.748014, 4.562486, -0.593623, -2.462424]]),
        ({"open_units": True, "activation": "silu"}, [[1.720001, 4.405233, -0.621635, -2.619678]]),
    ],
    ids=["pre", "open", "post", "rms", "gelu", "relu", "gelu-tanh", "silu"],
)  # fmt: skip
def test_hand_values(options: dict[str, Any], want: list[Row]) -> None:
    np.testing.assert_allclose(by_hand(**options)[: len(want)], want, rtol=0, atol=1.5e-6)


def test_silent_sublayers_leave_the_stream_before_norms_and_norm_it_after() -> None:
    weights = {
        name: np.ones(p.shape) if name.startswith("norm") and name.endswith("weight") else np.zeros(p.shape)
        for name, p in COMPONENTS["TransformerBlock"]
        .parameters({"d_model": 4, "num_heads": 2, "kv_heads": 2, "head_width": 2, "d_ff": 8}, CANONICAL)
        .items()
    }
    x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    sizes: dict[str, Any] = {"num_heads": 2, "kv_heads": 2, "causal": True}
    np.testing.assert_array_equal(transformer_block(weights, x, **sizes, variant=CANONICAL), x)
    twice = transformer_block(weights, x, **sizes, variant=CANONICAL.but(placement="post"))
    np.testing.assert_allclose(twice, [[[-1.341634, -0.447211, 0.447211, 1.341634]]], rtol=0, atol=1.5e-6)
