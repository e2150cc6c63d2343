"""conform adapt on functions that get their weights as arguments, and on masks and settings that constructors get."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.engine.request import RunRequest

NUMPY = """
    import numpy as np

    def softmax(x):
        x = np.exp(x - x.max(-1, keepdims=True))
        return x / x.sum(-1, keepdims=True)
"""
TORCH = """
    import math
    from dataclasses import dataclass, field

    import torch
    from torch import nn
"""
PAIRS = """
    def attention_init(key, dim):
        rng = np.random.default_rng(key)
        return [{"w": rng.normal(size=(dim, dim)) / dim**0.5} for _ in range(4)]

    def attention_apply(theta, x, heads):
        q, k, v = ((x @ layer["w"]).reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for layer in theta[:3])
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
        seen = np.tri(x.shape[1], dtype=bool)
        y = softmax(np.where(seen, scores, -np.inf)) @ v
        return y.swapaxes(1, 2).reshape(x.shape) @ theta[3]["w"]
"""
INSIDE = """
    def dense(rng, rows, columns):
        return {"w": rng.normal(size=(rows, columns)) / rows**0.5, "b": np.zeros(columns)}

    def init_params(rng, vocab_size, d_model, n_layers, d_ff):
        layer = lambda: {"attn": {"out": dense(rng, d_model, d_model)},
                         "mlp": {"up": dense(rng, d_model, d_ff), "down": dense(rng, d_ff, d_model)}}
        return {"wte": rng.normal(size=(vocab_size, d_model)), "blocks": [layer() for _ in range(n_layers)]}

    def apply(p, x):
        return x @ p["w"] + p["b"]

    def mlp(p, x):
        return apply(p["down"], np.maximum(apply(p["up"], x), 0))
"""
STAX = """
    def MLP(width, inner):
        def init_fun(rng, input_shape):
            up, down = rng.normal(size=(width, inner)), rng.normal(size=(inner, width))
            return input_shape, [up, np.zeros(inner), down, np.zeros(width)]

        def apply_fun(params, inputs):
            a, b, c, d = params
            return np.maximum(inputs @ a + b, 0) @ c + d

        return init_fun, apply_fun
"""
APART = """
    def mlp(x, W1, b1, W2, b2):
        return np.maximum(x @ W1.T + b1, 0) @ W2.T + b2
"""
MASK = """
    class Attention(nn.Module):
        def __init__(self, dim, heads, {mask}):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.mask = mask

        def forward(self, x):
            T = x.shape[1]
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            if self.mask is not None:
                {hides}
            return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
HELD = MASK.format(mask="mask=None", hides="scores = scores.masked_fill(self.mask[:T, :T], -math.inf)")
SWITCH = MASK.format(
    mask="mask=False",
    hides="scores = scores + torch.full((T, T), -math.inf).triu(1).to(scores) if self.mask else scores",
)
SETTINGS = """
    @dataclass
    class Inner:
        hidden: int = 7

    @dataclass
    class Config:
        width: int = 5
        mlp: Inner = field(default_factory=Inner)

    class MLP(nn.Module):
        def __init__(self, config: Config):
            super().__init__()
            self.up, self.down = nn.Linear(config.width, config.mlp.hidden), nn.Linear(config.mlp.hidden, config.width)

        def forward(self, x):
            return self.down(nn.functional.gelu(self.up(x)))
"""


def drafted(folder: Path, head: str, code: str):
    """Return the tables of a draft for one module, in which each component gives the definition's numbers."""
    (folder / "theirs.py").write_text(textwrap.dedent(head) + textwrap.dedent(code))
    found = draft(RunRequest(str(folder / "theirs.py"), config=Config()), {})
    assert found.proposals
    assert all(proposal.matched for proposal in found.proposals)
    return tomllib.loads(found.text())["components"]


def test_pairs_of_functions_are_bound_with_the_weights_that_init_makes(tmp_path):
    """Would break if code in the style of JAX needed a wrapper class."""
    attention = drafted(tmp_path, NUMPY, PAIRS)["MultiHeadAttention"]
    assert attention["parameters"] == {
        "object": "theirs:attention_init",
        "arguments": {"key": "seed", "dim": "d_model"},
    }
    assert attention["call"] == [{"theta": "parameters", "x": "x", "heads": "num_heads"}]


def test_weights_that_only_the_whole_model_makes_are_an_entry_of_its(tmp_path):
    """Would break if functions whose weights are made for the model alone were left out."""
    made = drafted(tmp_path, NUMPY, INSIDE)["FeedForward"]["parameters"]
    assert made["object"] == "theirs:init_params"
    assert made["output"] == "blocks.0.mlp"
    assert made["arguments"]["d_model"] == "d_model"


def test_a_function_that_gives_both_is_a_factory(tmp_path):
    """Would break if what makes init and apply were taken for one that makes a component."""
    feed_forward = drafted(tmp_path, NUMPY, STAX)["FeedForward"]
    assert feed_forward["factory"]
    assert feed_forward["parameters"][0] == "rng"
    assert feed_forward["call"] == ["parameters", "x"]


def test_weights_that_are_arguments_have_shapes(tmp_path):
    """Would break if weights that nobody makes could not be made by the kit, or only as (in, out)."""
    feed_forward = drafted(tmp_path, NUMPY, APART)["FeedForward"]
    assert feed_forward["parameters"]["W1"] == ["d_ff", "d_model"]
    assert feed_forward["parameters"]["b1"] == ["d_ff"]


def test_a_constructor_that_takes_a_mask_gets_the_causal_one(tmp_path):
    """Would break if a block without its mask were called one that looks ahead."""
    attention = drafted(tmp_path, TORCH, HELD)["MultiHeadAttention"]
    assert attention["construct"]["mask"] == "mask"
    assert attention["mask"] == {"kinds": ["bool"], "true": "hide"}
    assert attention["causal"] == "construct"


def test_a_mask_that_is_true_or_false_is_a_switch(tmp_path):
    """Would break if `mask=False` were left as it is, and the code called one that looks ahead."""
    attention = drafted(tmp_path, TORCH, SWITCH)["MultiHeadAttention"]
    assert attention["construct"]["mask"] == "causal"


@pytest.mark.parametrize("annotations", ["", "from __future__ import annotations\n"])
def test_settings_lie_in_settings(annotations, tmp_path):
    """Would break if a dataclass within another one kept its default."""
    construct = drafted(tmp_path, annotations + textwrap.dedent(TORCH), SETTINGS)["FeedForward"]["construct"]
    inner = {"object": "theirs:Inner", "arguments": {"hidden": "d_ff"}}
    assert construct["config"]["arguments"] == {"width": "d_model", "mlp": inner}
