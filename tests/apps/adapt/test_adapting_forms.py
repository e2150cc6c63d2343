"""conform adapt on forms that the contract's call has not: tables handed in, one sequence, widths from the input."""

import textwrap
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import adapt, draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.calling import call_of
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run
from conformkit.spec.components import COMPONENTS

HEAD = """
    import math

    import torch
    import torch.nn.functional as F
    from torch import nn

"""
HANDED = """
    def rope_tables(head_dim, length, theta):
        angles = torch.outer(torch.arange(length), theta ** (-torch.arange(0, head_dim, 2) / head_dim))
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            if dim % heads or dim // heads % 2:
                raise ValueError("heads of an even width are needed")
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

        def forward(self, x, cos, sin):
            split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            q, k = turned(split(self.q(x)), cos, sin), turned(split(self.k(x)), cos, sin)
            y = F.scaled_dot_product_attention(q, k, split(self.v(x)), is_causal=True)
            return self.o(y.transpose(1, 2).flatten(2))
"""
PAIR = """
    class Settings:
        def __init__(self, hidden_size=16, num_attention_heads=2, rope_theta=10000.0):
            self.hidden_size, self.num_attention_heads, self.rope_theta = hidden_size, num_attention_heads, rope_theta
            self.head_dim = hidden_size // num_attention_heads

    class RotaryEmbedding(nn.Module):
        def __init__(self, config):
            super().__init__()
            steps = torch.arange(0, config.head_dim, 2) / config.head_dim
            self.register_buffer("inv_freq", config.rope_theta ** -steps, persistent=False)

        def forward(self, x, position_ids):
            freqs = position_ids[:, :, None] * self.inv_freq  # (B, T, half a head)
            both = torch.cat([freqs, freqs], -1)
            return both.cos().to(x.dtype), both.sin().to(x.dtype)

    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None]

    class Attention(nn.Module):
        def __init__(self, config: Settings):
            super().__init__()
            if config.hidden_size % config.num_attention_heads or config.head_dim % 2:
                raise ValueError("heads of an even width are needed")
            names = ("q_proj", "k_proj", "v_proj", "o_proj")
            self.maps = nn.ModuleDict({n: nn.Linear(config.hidden_size, config.hidden_size, bias=False) for n in names})
            self.heads = config.num_attention_heads

        def forward(self, hidden_states, POSITIONS):
            q, k, v = (self.maps[n](hidden_states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                       for n in ("q_proj", "k_proj", "v_proj"))
            y = F.scaled_dot_product_attention(
                turned(q, *position_embeddings), turned(k, *position_embeddings), v, is_causal=True
            )
            return self.maps["o_proj"](y.transpose(1, 2).flatten(2))
"""
LAZY = """
    class CausalAttention(nn.Module):
        def __init__(self, num_heads):
            super().__init__()
            self.num_heads, self.maps = num_heads, None

        def forward(self, x):
            if self.maps is None:
                if x.shape[-1] % self.num_heads:
                    raise ValueError("the width is not a multiple of num_heads")
                names = ("query", "key", "value", "out")
                self.maps = nn.ModuleDict({name: nn.Linear(x.shape[-1], x.shape[-1]) for name in names}).to(x)
            q, k, v = (self.maps[name](x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
                       for name in ("query", "key", "value"))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.maps["out"](y.transpose(1, 2).flatten(2))
"""
ALONE = """
    def attention(q, k, v, mask):  # (n, d) each, of one sequence
        if q.ndim != 2:
            raise ValueError("one sequence at a time")
        return (q @ k.mT / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v
"""
TURNS = """
    class Attn(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            if width % heads:
                raise ValueError("width is not a multiple of heads")
            self.heads, self.norm = heads, nn.LayerNorm(width)
            self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

        def forward(self, x):
            x = self.norm(x)
            q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    class Hidden(nn.Sequential):
        def __init__(self, width):
            super().__init__(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    class LM(nn.Module):
        def __init__(self, vocab, width, heads, depth, max_len):
            super().__init__()
            self.max_len = max_len
            self.tok, self.pos = nn.Embedding(vocab, width), nn.Embedding(max_len, width)
            parts = [part for _ in range(depth) for part in (Attn(width, heads), Hidden(width))]
            self.layers, self.norm = nn.ModuleList(parts), nn.LayerNorm(width)
            self.head = nn.Linear(width, vocab, bias=False)

        def forward(self, ids):
            if ids.shape[1] > self.max_len:
                raise ValueError("too long")
            x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
            for part in self.layers:
                x = x + part(x)
            return self.head(self.norm(x))

        @torch.no_grad()
        def generate(self, ids, length):
            while ids.shape[1] < length:
                last = self(ids[:, -self.max_len :])[:, -1]
                ids = torch.cat([ids, CHOOSE], 1)
            return ids
"""
GREEDY = "last.argmax(-1, keepdim=True)"
SAMPLED = "torch.multinomial(last.softmax(-1), 1)"


def written(folder: Path, code: str, name: str = "theirs.py") -> RunRequest:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(textwrap.dedent(HEAD) + textwrap.dedent(code))
    return RunRequest(str(path.parent if path.name == "__init__.py" else path), config=Config())


def drafted(folder: Path, code: str) -> Draft:
    return draft(written(folder, code), {})


def tables(found: Draft):
    """Return the declarations of components that reproduce the definition's numbers."""
    matched = {proposal.component for proposal in found.proposals if proposal.matched}
    return {name: table for name, table in tomllib.loads(found.text())["components"].items() if name in matched}


def test_tables_of_a_rotation_are_handed_in_as_the_package_makes_them(tmp_path):
    """Would break if attention that gets cosines and sines from the model were left unjudged."""
    handed = tables(drafted(tmp_path, HANDED))["MultiHeadAttention"]["call"][-1]
    made = {"head_dim": "head_width", "length": "T", "theta": 10000.0}
    assert {name: (table["arguments"], table["output"]) for name, table in handed.items()} == {
        "cos": (made, 0), "sin": (made, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    "argument",
    ["position_embeddings", pytest.param("position_embeddings=None", marks=pytest.mark.full(guard=
     "test_a_pair_of_tables_is_handed_in_as_one_argument"))], ids=["required", "by-default-none"],
)  # fmt: skip
def test_a_pair_of_tables_is_handed_in_as_one_argument(tmp_path, argument):
    """Would break if attention that gets (cos, sin) for numbered ids were left unjudged."""
    handed = tables(drafted(tmp_path, PAIR.replace("POSITIONS", argument)))["MultiHeadAttention"]["call"][-1]
    assert handed["position_embeddings"]["call"] == {"x": "x", "position_ids": "position_ids"}
    assert "output" not in handed["position_embeddings"]


@pytest.mark.full(guard="test_code_without_a_batch_axis_is_called_for_each_sequence")
def test_a_width_that_no_argument_sets_is_that_of_the_first_input(tmp_path):
    """Would break if layers that are made in the first call were taken for ones without parameters."""
    found = drafted(tmp_path, LAZY)
    assert tables(found)["MultiHeadAttention"]["construct"] == {"num_heads": "num_heads"}
    assert any("width is taken for that of its first input" in doubt for doubt in found.doubts())


def test_code_without_a_batch_axis_is_called_for_each_sequence(tmp_path):
    table = tables(drafted(tmp_path, ALONE))["ScaledDotProductAttention"]
    assert table["layout"] == "one sequence"
    assert table["mask"] == {"kinds": ["float"]}


@pytest.mark.full(guard="test_tables_of_a_rotation_are_handed_in_as_the_package_makes_them")
def test_a_model_whose_layers_take_turns_in_one_list_is_bound_though_its_parts_are_not(tmp_path):
    """Would break if parts with a norm of their own kept the model from being examined."""
    found = drafted(tmp_path, TURNS.replace("CHOOSE", GREEDY))
    model = tables(found)["TinyTransformerLM"]
    assert "MultiHeadAttention" not in tables(found)
    assert model["generate"]["call"] == ["ids", {"length": "T + max_new_tokens"}]
    assert "greedy" not in model["generate"] or model["generate"]["greedy"] == {}


@pytest.mark.full(guard="test_what_takes_one_prompt_is_called_for_each")
def test_a_prompt_may_be_a_list_of_ids(tmp_path):
    """Would break if generation that takes one prompt were called with a batch: an error in right code."""
    start, end = "def generate(self, ids, length):\n", "return ids\n"
    code = TURNS.replace("CHOOSE", GREEDY).replace(
        start, f"{start}            ids, length = torch.tensor([ids]), length\n"
    )
    code = code.replace(end, "return ids[0].tolist()\n")
    assert tables(drafted(tmp_path, code))["TinyTransformerLM"]["generate"]["prompts"] == "lists"
    wanted = {"only": ("GEN-LENGTH", "DEV-FOLLOW"), "discover": True, "config": None}  # a list has no device to follow
    report = run(replace(written(tmp_path, code), **wanted))
    assert {r.clause.id: r.verdict for r in report.results}["GEN-LENGTH"] is Verdict.PASS
    assert not any(result.verdict.red for result in report.results)


@pytest.mark.full(guard="test_tables_of_a_rotation_are_handed_in_as_the_package_makes_them")
def test_a_model_that_only_samples_is_declared_so_with_a_doubt(tmp_path):
    found = drafted(tmp_path, TURNS.replace("CHOOSE", SAMPLED))
    assert tables(found)["TinyTransformerLM"]["generate"]["greedy"] is False
    assert any("taken for one that samples" in doubt for doubt in found.doubts())


def test_what_is_not_there_is_left_out_with_the_reason_and_nothing_is_claimed_of_it(tmp_path):
    """Would break if a draft that found one component of seven were called a pass, or `my-code` could not be named."""
    found = adapt(written(tmp_path, ALONE, "01_my-code/__init__.py"), {})
    assert found.report is not None
    assert not found.conforms
    assert not [red for red in found.report.failures() if found.report.breaks(red)]
    assert "TinyTransformerLM" in found.report.unusable
    assert "[components.TinyTransformerLM]\nunconfirmed = true\n# unsure: nothing looks like it" in found.draft.text()


@pytest.mark.parametrize(
    ("names", "inputs"),
    [
        (["query", "value", "key"], ["x", "x", "x"]),
        (["query", "key_value"], ["x"]),
        (["x"], ["x"]),
        (["queries", "keys", "values"], ["x", "x", "x"]),
    ],
)
def test_inputs_called_like_queries_keys_and_values_are_the_same_one(names, inputs):
    form = {"kind": "positional", "required": True, "default": None, "positional_only": False}
    call = call_of(COMPONENTS["MultiHeadAttention"], [{"name": name, **form} for name in names])
    assert list(call.positional) == inputs
