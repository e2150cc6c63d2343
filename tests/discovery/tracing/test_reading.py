"""Models as people write them, right and wrong: what one followed call says about each."""

import itertools

import numpy as np
import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.exports import bind_export
from conformkit.conformance.discovery.tracing.following import follow
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.subject.component import Subject
from conformkit.spec.components import component
from conformkit.spec.variants import CANONICAL

GPT = """
import math, torch
from torch import nn
from torch.nn import functional as F

class Unit(nn.LayerNorm):
    def forward(self, x):
        c = x - x.mean(-1, keepdim=True)
        return self.weight * c / (c.pow(2).sum(-1, keepdim=True) + self.eps).sqrt() + self.bias

class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.heads = num_heads
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (z.view(B, T, self.heads, C // self.heads).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(B, T, C)
        return self.c_proj(y)

class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = Attention(d_model, num_heads)
        self.fc, self.proj = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.proj(F.gelu(self.fc(self.ln_2(x))))
        return x

class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.h = nn.ModuleList(Block(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.ln_f, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size, bias=False)
    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))
"""
NAME = "TinyTransformerLM"
FOUND = {"qkv_bias": True, "output_bias": True, "positions": "learned", "head_bias": False}


@pytest.fixture
def read(tmp_path):
    """Return a function that follows one call of the model of a source, with texts in it replaced."""
    number = itertools.count()

    def one(*changes, source=GPT):
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        folder = tmp_path / str(next(number))  # compiled files of the source before it may look new enough
        folder.mkdir()
        (folder / "mypkg.py").write_text(source, encoding="utf-8")
        with imported(RunRequest(str(folder / "mypkg.py"), isolation="none")) as (implementation, _):
            targets = {"op": "describe", "targets": {NAME: f"mypkg:{NAME}"}, "module": None}
            export = implementation.request(targets).header["exports"][NAME]
            config = parse_config(f'[components.{NAME}]\npath = "mypkg:{NAME}"\n')
            found = follow(Subject(bind_export(component(NAME), export, config, None), implementation))
            return found and found.reading

    return one


def choices(reading):
    return next(reading.variants(CANONICAL)).differences()


def told(reading):
    return [f"{finding.path}: {finding.told}" for finding in reading.findings]


def test_a_right_model_is_wholly_explained(read):
    """Catches a part that is not read, and a right one that is taken for a mistake."""
    reading = read()
    assert choices(reading) == FOUND
    assert (reading.findings, reading.open) == ([], [])
    shapes = component(NAME).parameters(
        {"vocab_size": 29, "d_model": 24, "num_heads": 4, "kv_heads": 4, "head_width": 6, "num_layers": 2, "d_ff": 20,
         "block_size": 11},
        CANONICAL.but(**FOUND),
    )  # fmt: skip
    assert {n: a.shape for n, a in reading.weights.items()} == {n: p.shape for n, p in shapes.items()}


CHOICES = {
    "rmsnorm": (
        [("nn.LayerNorm(d_model)", "nn.RMSNorm(d_model, eps=1e-6)")], {"norm": "rmsnorm", "norm_eps": 1e-6},
    ),
    "eps": ([("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-12)")], {"norm_eps": 1e-12}),
    "eps-outside": ([("(c.pow(2).sum(-1, keepdim=True) + self.eps).sqrt()",
                      "(x.std(-1, correction=0, keepdim=True) + self.eps)"),
                     ("nn.LayerNorm(d_model)", "Unit(d_model)")], {"norm_deviation": "population"}),
    "relu": ([("F.gelu(", "F.relu(")], {"activation": "relu"}),
    "gelu-tanh": ([("F.gelu(self.fc(self.ln_2(x)))", "F.gelu(self.fc(self.ln_2(x)), approximate='tanh')")],
                  {"activation": "gelu_tanh"}),
    "post": ([("x + self.attn(self.ln_1(x))", "self.ln_1(x + self.attn(x))"),
              ("x + self.proj(F.gelu(self.fc(self.ln_2(x))))", "self.ln_2(x + self.proj(F.gelu(self.fc(x))))"),
              ("self.head(self.ln_f(x))", "self.head(x)"),
              ("self.ln_f, self.head = nn.LayerNorm(d_model), ", "self.head = ")],
             {"placement": "post", "final_norm": False}),
    "tied": ([("return self.head(self.ln_f(x))", "return self.ln_f(x) @ self.wte.weight.T"),
              (", self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size, bias=False)",
               " = nn.LayerNorm(d_model)")],
             {"tied": True}),
    "scaled": ([("self.wte(idx)", "self.wte(idx) * self.wte.weight.shape[1] ** 0.5")], {"embedding_scale": True}),
    "fused": ([("y = (weights @ v)", "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)")], {}),
    "log": ([("return self.head(self.ln_f(x))", "return self.head(self.ln_f(x)).log_softmax(-1)")],
            {"log_probabilities": True}),
    "scaled-in-one": ([("scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))",
                       ("q_, k_ = q.flatten(0, 1), k.flatten(0, 1).mT; z = torch.zeros(1, T, T, dtype=x.dtype)\n"
                       "        scores = z.baddbmm(q_, k_, alpha=k.size(-1) ** -0.5).view(B, self.heads, T, T)"))], {}),
    "parallel": ([("x = x + self.attn(self.ln_1(x))\n        x = x + self.proj(F.gelu(self.fc(self.ln_2(x))))",
                   "x = x + self.attn(self.ln_1(x)) + self.proj(F.gelu(self.fc(self.ln_2(x))))")],
                 {"placement": "parallel_two_norms"}),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "found"), CHOICES.values(), ids=CHOICES)
def test_a_choice_is_read_off(read, changes, found):
    """Catches a legitimate choice that is not seen, or is taken for a mistake."""
    reading = read(*changes)
    assert choices(reading) == FOUND | found
    assert told(reading) == reading.open == []


MISTAKES = {
    "scale": ("math.sqrt(k.size(-1))", "math.sqrt(C)", "scores × 0.2041 = 1/√d_model; expected 1/√d_head = 0.4082"),
    "unscaled": (" / math.sqrt(k.size(-1))", "", "scores × 1, unscaled; expected 1/√d_head"),
    "queries": (".softmax(dim=-1)", ".softmax(dim=-2)", "the softmax is over queries; expected over keys"),
    "no-mask": ("scores.masked_fill(hidden, -math.inf)", "scores", "no mask; expected a causal mask"),
    "one-ahead": (".triu(1)", ".triu(2)", "one later position visible; expected a causal mask"),
    "filled-with-0": ("hidden, -math.inf", "hidden, 0.0", "scores of later positions are set to 0; expected -∞"),
    "mask-as-numbers": ("scores.masked_fill(hidden, -math.inf)", "(scores - hidden.to(x.dtype))",
                        "scores of later positions are changed by -1, seen from earlier ones"),
    "fused-mask-as-numbers": (
        "weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)\n        y = (weights @ v)",
        "y = F.scaled_dot_product_attention(q, k, v, attn_mask=(~hidden).to(x.dtype))",
        "scores of later positions are changed by -1, seen from earlier ones",
    ),
    "masked-late": ("scores.masked_fill(hidden, -math.inf).softmax(dim=-1)",
                    "scores.softmax(dim=-1).masked_fill(hidden, 0.0)", "weights do not sum to 1"),
    "averaged": ("scores.masked_fill(hidden, -math.inf).softmax(dim=-1)", "torch.ones_like(scores) / T",
                 "all keys have the same weight, whatever the scores are"),
    "averaged-so-far": ("scores.masked_fill(hidden, -math.inf).softmax(dim=-1)",
                        "(scores * 0).masked_fill(hidden, -math.inf).softmax(dim=-1)",
                        "all keys have the same weight, whatever the scores are"),
    "flattened": (".transpose(1, 2).reshape(B, T, C)", ".reshape(B, T, C)", "heads are flattened without moving them"),
    "no-residual": ("x = x + self.attn(self.ln_1(x))", "x = self.attn(self.ln_1(x))", "no residual path"),
    "norm-on-path": ("x = x + self.attn(self.ln_1(x))", "x = self.ln_1(x); x = x + self.attn(x)",
                     "the residual path of attention goes through the norm"),
    "added-too-early": ("x = x + self.attn(self.ln_1(x))\n        x = x + self.proj(F.gelu(self.fc(self.ln_2(x))))",
                        "y = x + self.attn(self.ln_1(x))\n        x = x + self.proj(F.gelu(self.fc(self.ln_2(y))))",
                        "the feed-forward network gives is added to an earlier value than it reads"),
    "other-activation": ("F.gelu(", "F.leaky_relu(", "is none of the activations"),
    "unused": ("self.head(self.ln_f(x))", "self.head(x)", "parameters that are never used: ln_f.bias, ln_f.weight"),
    "positions": ("torch.arange(idx.shape[1])", "torch.arange(idx.shape[1]).flip(0)", "neither a learned table nor"),
    "by-batch": ("self.wpe(torch.arange(idx.shape[1]))", "self.wpe(torch.arange(idx.shape[0]))[:, None]",
                 "differs between texts"),
    "sum-norm": ("nn.LayerNorm(d_model)", "Unit(d_model)", "the sum of squares, not the mean"),
    "one-bias": ("nn.Linear(d_model, d_ff)", "nn.Linear(d_model, d_ff, bias=False)",
                 "1 of 2 linear maps of the network"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_read_off_and_the_rest_stays_explained(read, old, new, says):
    """Catches a mistake that one call shows and that is not told, or that hides everything else."""
    reading = read((old, new))
    assert any(says in text for text in told(reading)), (told(reading), reading.open)
    assert choices(reading).items() >= {"qkv_bias": True, "head_bias": False}.items()
    assert {"blocks.1.attention.out.weight", "blocks.0.feed_forward.up.weight"} <= reading.weights.keys()


def test_a_norm_on_the_residual_path_is_none_of_the_embeddings(read):
    """Catches that of the first block taken for a choice of its own, whose parameters the model then lacks."""
    old, new, _ = MISTAKES["norm-on-path"]
    reading = read((old, new))
    assert choices(reading) == FOUND
    assert {path for path in reading.weights if path.endswith("norm1.weight")} == {
        "blocks.0.norm1.weight", "blocks.1.norm1.weight",
    }  # fmt: skip
    assert [finding.path for finding in reading.findings] == ["blocks.0.residual", "blocks.1.residual"]


@pytest.mark.parametrize("last", ["self.ln_f(x)", "x"], ids=["final-norm", "unused-final-norm"])
def test_norms_on_every_residual_path_are_no_other_placement(read, last):
    """Catches x = ln(x); x = x + S(x) read as post-norm with a norm on the embeddings, which gives the same numbers:
    the fix was to put a norm there, and a model without a final norm passed.
    """
    paths = [("x = x + self.attn(self.ln_1(x))", "x = self.ln_1(x); x = x + self.attn(x)")]
    paths += [
        ("x = x + self.proj(F.gelu(self.fc(self.ln_2(x))))", "x = self.ln_2(x); x = x + self.proj(F.gelu(self.fc(x)))")
    ]
    reading = read(*paths, ("self.head(self.ln_f(x))", f"self.head({last})"))
    assert choices(reading) == FOUND
    told = [finding.told for finding in reading.findings]
    assert sum("goes through the norm" in one for one in told) == 4
    assert any("never used: ln_f" in one for one in told) == (last == "x")


def test_a_final_norm_before_the_blocks_is_in_a_wrong_place(read):
    """Catches a model without one that passes, its norm taken for one of the embeddings."""
    start = "x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))"
    reading = read((start, f"{start}; x = self.ln_f(x)"), ("self.head(self.ln_f(x))", "self.head(x)"))
    assert choices(reading) == FOUND
    assert "norm.weight" in reading.weights
    assert any("stands before the first block" in finding.told for finding in reading.findings)


def test_a_mistake_in_one_block_is_told_there(read):
    """Catches a rule of consistency that looks at the first block alone."""
    reading = read(
        ("for block in self.h:\n            x = block(x)",
         "for n, block in enumerate(self.h):\n            x = block(x, n)"),
        ("def forward(self, x):\n        x = x + self.attn(self.ln_1(x))",
         "def forward(self, x, n):\n        x = self.ln_1(x + self.attn(x)) if n else x + self.attn(self.ln_1(x))"),
    )  # fmt: skip
    assert [finding.path for finding in reading.findings] == ["blocks.1.residual"]


def test_what_nothing_explains_is_open_not_a_mistake(read):
    """Catches a guess about code that is of another kind: scores that are capped are a choice of newer models."""
    reading = read(("scores.masked_fill", "(5 * torch.tanh(scores / 5)).masked_fill"))
    assert reading.findings == []
    assert any("no softmax of the scores" in text for text in reading.open)
    assert not reading.conclusive


TURN = """t = torch.arange(T, dtype=x.dtype)[:, None]
        angles = t * ANGLES[: C // self.heads // 2]
        angles = LAYOUT
        turn = lambda z: z * angles.cos() + torch.cat((-z[..., z.shape[-1] // 2 :], z[..., : z.shape[-1] // 2]), -1) \\
            * angles.sin()
        q, k = turn(q), turn(k)
        scores = q @"""
ANGLES = "torch.tensor([1.0, 0.31, 0.11, 0.02], dtype=x.dtype)"  # no base gives these


@pytest.mark.parametrize(
    ("layout", "told_so"),
    [("torch.cat((angles, angles), -1)", False), ("angles.repeat_interleave(2, -1)", True)],
    ids=["angles-of-its-own", "angles-of-neighbors"],
)
def test_what_mixes_pairs_by_position_and_is_no_rotation_is_a_mistake(read, layout, told_so):
    """Catches a mixed-up layout of angles that is left open, and rotations by other angles that are taken for one."""
    reading = read(("scores = q @", TURN.replace("ANGLES", ANGLES).replace("LAYOUT", layout)))
    assert any("in pairs by position, and not rotated" in text for text in told(reading)) == told_so
    assert reading.conclusive == told_so


def test_what_cannot_be_followed_says_nothing(read):
    """Catches a reading of code in which nothing is recorded."""
    assert read(source="import numpy as np\nclass TinyTransformerLM:\n    def __init__(self, vocab_size, d_model, "
                       "num_heads, num_layers, d_ff, block_size):\n        self.w = np.ones((vocab_size, vocab_size))\n"
                       "    def __call__(self, idx):\n        return self.w[idx]\n") is None  # fmt: skip


def test_weights_are_those_of_the_parts(read):
    """Catches rows of another head, or of keys for queries."""
    plain, turned = read(), read(("q, k, v = self.c_attn", "k, q, v = self.c_attn"))
    assert np.array_equal(plain.weights["blocks.0.attention.q.weight"], turned.weights["blocks.0.attention.k.weight"])


def test_a_shortcut_around_a_norm_of_its_own_is_told(read):
    """Catches norms after sublayers that are taken for norms before the next one, where a shortcut skips one."""
    post = (
        ("x = x + self.attn(self.ln_1(x))\n        x = x + self.proj(F.gelu(self.fc(self.ln_2(x))))",
         "y = self.ln_1(x + self.attn(x))\n        x = self.ln_2(WHERE + self.proj(F.gelu(self.fc(y))))"),
        ("self.head(self.ln_f(x))", "self.head(x)"),
        ("self.ln_f, self.head = nn.LayerNorm(d_model), ", "self.head = "),
    )  # fmt: skip
    right, wrong = read(*post, ("WHERE", "y")), read(*post, ("WHERE", "x"))
    assert told(right) == right.open == []
    assert told(wrong)[0].startswith("blocks.0.residual: what the feed-forward network gives is added to an earlier")
    assert choices(wrong) == choices(right)
    assert choices(right)["placement"] == "post"
