"""conform adapt on sizes that are fixed in the code: tables for a length, heads of a width, an inner width."""

import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery import fitting
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.engine.request import RunRequest

ATTENTION = """
import torch
from torch import nn

NUMBER

class Attention(nn.Module):
    def __init__(self, *, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

    def forward(self, x):
        n = x.shape[1]
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = map(split, self.to_qkv(x).chunk(3, -1))
        scores = (q @ k.mT * self.scale).masked_fill(~self.mask[:n, :n], -torch.inf)
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
NETWORK = """
from torch import nn

def FeedForward(dim, mult=4, dropout=0.0):
    inner = int(dim * mult * 2 / 3)
    return nn.Sequential(nn.Linear(dim, inner), nn.GELU(), nn.Dropout(dropout), nn.Linear(inner, dim))
"""
THIRDS = """
import torch.nn.functional as F
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, multiple_of=1):
        super().__init__()
        hidden_dim = multiple_of * -(-int(2 * hidden_dim / 3) // multiple_of)
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))
"""
ROUNDED = """
import torch.nn.functional as F
from torch import nn

class SwiGLU(nn.Module):
    def __init__(self, dim):
        super().__init__()
        hidden = ROUND
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""
EIGHTS = """
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (-1, 8)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        return self.to_out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
"""
FIXED = """
import torch
from torch import nn

class MLP(nn.Module):
    def __init__(self, width, breadth=1536):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(width, breadth), nn.GELU(), nn.Linear(breadth, width)
        self.register_buffer("table", torch.ones(2048, 1))

    def forward(self, x):
        return self.down(self.act(self.up(x)))
"""
ENCODER = """
from torch import nn

class EncoderBlock(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.mlp(x))
"""
SAYS = '"""Blocks of image models: no causality."""' + ENCODER.replace("EncoderBlock", "Block")
MODEL = """
class LanguageModel(nn.Module):
    pass
"""


def drafted(folder: Path, source: str) -> Draft:
    path = folder / "their_sizes.py"
    path.write_text(source, encoding="utf-8")
    return draft(RunRequest(impl=str(path), config=Config()), {})


def attention(length: str, number: str = "") -> str:
    return ATTENTION.replace("LENGTH", length).replace("NUMBER", number)


def table(found: Draft, name: str) -> dict:
    return tomllib.loads(found.text())["components"][name]


@pytest.mark.parametrize(
    ("source", "doubt"),
    [(attention("block_size", "block_size = 256"), False), (attention("100"), True)],
    ids=["a-number-of-its-module", "a-number-in-the-code"],
)
def test_a_table_inside_attention_limits_the_length(tmp_path, source, doubt):
    """Would break if 256, which adapt itself makes up elsewhere, were taken for no number of the code."""
    found = drafted(tmp_path, source)
    longest = 100 if doubt else 256
    assert table(found, "MultiHeadAttention")["limits"] == {"tokens": {"max": longest}}
    told = f"MultiHeadAttention: {longest + 1} positions are refused: taken for a limit; if they should work, remove it"
    assert (told in found.doubts()) is doubt


def test_the_length_that_a_part_is_built_with_limits_it_whatever_a_larger_model_has(tmp_path):
    """Would break if a setting of the module were declared as the limit of a part that is built with less."""
    source = attention("context_length", 'LARGE = {"context_length": 1024}').replace(
        "*, dim,", "*, dim, context_length,"
    )
    found = table(drafted(tmp_path, source), "MultiHeadAttention")
    assert found["limits"]["tokens"] == {"max": found["construct"]["context_length"]} == {"max": 256}


def test_the_width_of_a_head_is_given_although_it_has_a_default(tmp_path):
    found = drafted(tmp_path, attention("600"))
    assert table(found, "MultiHeadAttention")["construct"]["dim_head"] == "d_model // num_heads"
    assert "limits" not in table(found, "MultiHeadAttention")


def test_a_function_that_needs_the_width_alone_makes_a_component(tmp_path):
    found = table(drafted(tmp_path, NETWORK), "FeedForward")
    assert (found["factory"], found["limits"]) == (True, {"d_ff": "8 * d_model // 3"})


@pytest.mark.full(guard="test_a_function_that_needs_the_width_alone_makes_a_component")
def test_an_inner_width_that_is_a_number_of_the_code_is_that_number(tmp_path):
    """Would break if the width that is tried, which every square matrix has, were taken for the inner one."""
    assert table(drafted(tmp_path, FIXED), "FeedForward")["limits"] == {"d_ff": 1536}


@pytest.mark.parametrize(
    ("rounding", "width"),
    [
        ("16 * -(-int(8 * dim / 3) // 16)", "(8 * d_model // 3 + 15) // 16 * 16"),
        ("int(8 * dim / 3) // 8 * 8", "8 * d_model // 3 // 8 * 8"),
        ("8 * dim // 3", "8 * d_model // 3"),
    ],
    ids=["up", "down", "neither"],
)
def test_an_inner_width_of_two_thirds_may_be_rounded_to_multiples(tmp_path, rounding, width):
    """Would break if the first width that is tried, two thirds of which are a multiple of 16, decided."""
    network = drafted(tmp_path, ROUNDED.replace("ROUND", rounding))
    assert table(network, "FeedForward")["limits"] == {"d_ff": width}


def test_a_width_of_heads_that_is_a_number_of_the_code_is_found(tmp_path):
    found = table(drafted(tmp_path, EIGHTS), "MultiHeadAttention")
    assert found["limits"] == {"num_heads": "d_model // 8", "d_model": {"multiple_of": 8}}


def test_code_that_takes_two_thirds_of_a_width_is_asked_for_more(tmp_path):
    """Would break if d_ff were another width than that of the layers, and the whole were left out."""
    found = drafted(tmp_path, THIRDS)
    assert found.proposals[0].matched
    assert table(found, "FeedForward")["construct"]["hidden_dim"] == "(3 * d_ff + 1) // 2"


@pytest.mark.parametrize(
    ("source", "causal"),
    [(ENCODER, "never"), (ENCODER + MODEL, "always"), (SAYS, "never")],
    ids=["alone", "beside-a-language-model", "its-author-says-so"],
)
def test_a_block_of_an_encoder_reads_complete_texts(tmp_path, source, causal):
    """Would break if a causal mask that a language model's block lacks were declared away."""
    found = drafted(tmp_path, source)
    assert table(found, "TransformerBlock")["causal"] == causal


SETTINGS = """
import numpy as np

class Config:
    d_model = 64
    d_ff = 128

    def __init__(self, **given):
        for name, value in given.items():
            if not hasattr(Config, name):
                raise TypeError(name)
            setattr(self, name, value)

class MLP:
    def __init__(self, cfg=None):
        cfg = cfg or Config()
        self.w1, self.b1 = np.random.randn(cfg.d_ff, cfg.d_model), np.zeros(cfg.d_ff)
        self.w2, self.b2 = np.random.randn(cfg.d_model, cfg.d_ff), np.zeros(cfg.d_model)

    def __call__(self, x):
        return np.maximum(x @ self.w1.T + self.b1, 0) @ self.w2.T + self.b2
"""


def test_settings_are_numbers_of_a_class_that_takes_any_keyword(tmp_path):
    """Would break if a class whose fields no signature shows, or an argument that may be None, held no settings."""
    found = table(drafted(tmp_path, SETTINGS), "FeedForward")
    sizes = {"d_model": "d_model", "d_ff": "d_ff"}
    assert found["construct"] == {"cfg": {"object": "their_sizes:Config", "arguments": sizes}}


NESTED = """
import numpy as np

DEFAULTS = {"model": {"width": 8, "ffn": {"hidden": 9, "act": "relu"}, "heads": 2}}

class MLP:
    def __init__(self, cfg=DEFAULTS):
        width, hidden = cfg["model"]["width"], cfg["model"]["ffn"]["hidden"]
        assert cfg["model"]["ffn"]["act"] == "relu"
        self.w1, self.b1 = np.random.randn(hidden, width), np.zeros(hidden)
        self.w2, self.b2 = np.random.randn(width, hidden), np.zeros(width)

    def __call__(self, x):
        return np.maximum(x @ self.w1.T + self.b1, 0) @ self.w2.T + self.b2
"""


def test_settings_may_lie_in_dictionaries_of_dictionaries(tmp_path):
    """Would break if a nested dictionary, as a YAML file gives it, held no sizes, or lost its texts."""
    found = table(drafted(tmp_path, NESTED), "FeedForward")
    model = {"width": "d_model", "ffn": {"hidden": "d_ff", "act": "'relu'"}, "heads": 1}
    assert found["construct"] == {"cfg": {"model": model}}


@pytest.mark.parametrize(
    ("table", "limits"),
    [
        ({"construct": {"vocab": "vocab_size"}}, {"tokens": {"max": 512}}),
        ({"construct": {"vocab": "vocab_size", "context": "block_size"}}, None),
        ({"construct": {}, "globals": {"CONTEXT": "block_size"}}, None),
        ({"construct": {}, "limits": {"block_size": 64}}, {"block_size": 64}),
    ],
    ids=["no-length", "an-argument", "a-global", "a-limit"],
)
def test_a_table_of_positions_limits_a_model_that_takes_no_length(monkeypatch, table, limits):
    """Would break if a right model with 512 positions were red for 513 of them."""
    monkeypatch.setattr(fitting, "_takes", lambda part, proposal, tokens, bench: tokens <= 512)
    proposal = Proposal("TinyTransformerLM", table, [])
    fitting.limit_to_tables(proposal, None)
    assert proposal.table.get("limits") == limits
