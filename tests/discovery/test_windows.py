"""Attention that sees so many keys: a number that nobody has said is no reason to call it wrong."""

import pytest

from conformkit.conformance.discovery.meanings import is_window
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

ATTENTION = """
import numpy as np

class Attention:
    def __init__(self, n_embd, n_head, ARGUMENT):
        rng = np.random.default_rng(0)
        self.n_head, self.number = n_head, KEPT
        self.q, self.k, self.v, self.o = (rng.normal(size=(n_embd, n_embd)) * 0.2 for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = ((x @ w.T).reshape(B, T, self.n_head, -1).swapaxes(1, 2) for w in (self.q, self.k, self.v))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        back = np.arange(T)[:, None] - np.arange(T)
        scores = np.where(SEEN, scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ v
        return y.swapaxes(1, 2).reshape(B, T, C) @ self.o.T
"""
WINDOW = "(back >= 0) & (back < self.number)"
STYLES = {
    "required": ("window", "window", WINDOW, 3),
    "default": ("sliding_window=64", "sliding_window", WINDOW, 3),
    "of-the-code": ("bias=False", "16", WINDOW, 16),
    "longest-input": ("window", "np.tril(np.ones((window, window)))", "self.number[:T, :T] > 0", 0),
    "by-distance": ("max_positions", "max_positions", "(back >= 0) & (back <= self.number)", 0),
}


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges attention at many sizes without a file."""

    def run_it(argument, kept, seen):
        source = ATTENTION.replace("ARGUMENT", argument).replace("KEPT", kept).replace("SEEN", seen)
        (tmp_path / "gpt.py").write_text(source)
        return run(RunRequest(str(tmp_path / "gpt.py"), only=("MHA-SIZES", "MHA-ORACLE"), discover=True))

    return run_it


@pytest.mark.full
@pytest.mark.parametrize("style", STYLES)
def test_a_number_that_nobody_has_said_makes_no_right_code_wrong(judged, style):
    """Catches 256, made up for an argument, as the end of right numbers; a window that is not found is one too."""
    *how, keys = STYLES[style]
    report = judged(*how)
    assert not report.failures()
    assert not report.unusable
    assert max((v for name, v in report.variant.items() if name.endswith("window")), default=0) == keys


@pytest.mark.full
def test_one_key_more_than_the_argument_says_is_left_open(judged):
    """Catches a verdict on what some count so and others so, whichever it is: neither is surely wrong, or right."""
    report = judged("window", "window", "(back >= 0) & (back <= self.number)")
    assert "window = 3 makes it see 4 keys" in report.unusable["MultiHeadAttention"].problem
    assert not report.failures()
    assert not report.conforms


MODEL = """
import math
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, n_embd, n_head, window, layer):
        super().__init__()
        self.n_head, self.window = n_head, window if LOCAL else 10**6
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv, self.out = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(C, 2))
        back = torch.arange(T)[:, None] - torch.arange(T)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill((back < 0) | (back >= self.window), -math.inf)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln_2(x))

class GPT(nn.Module):
    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd, window=64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block(n_embd, n_head, window, i) for i in range(n_layer)])
        self.ln_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("local", "found", "fails"),
    [("layer % 2 == 0", "even", []), ("True", "all", []), ("layer == 0", "even", ["WIN-LAYERS"])],
    ids=["alternating", "everywhere", "in-the-first-alone"],
)
def test_layers_that_alternate_are_seen(tmp_path, local, found, fails):
    """Catches local and global attention in turn, judged as a window that some layers were not given."""
    (tmp_path / "gpt.py").write_text(MODEL.replace("LOCAL", local))
    report = run(RunRequest(str(tmp_path / "gpt.py"), only=("WIN-LAYERS",), discover=True, diagnose=False))
    assert [result.clause.id for result in report.failures()] == fails
    assert report.variant.get("TinyTransformerLM.window_layers", "all") == found


@pytest.mark.parametrize(
    ("name", "may_be"),
    [("window", True), ("window_size", True), ("sliding_window", True), ("local_window", True), ("attn_window", True),
     ("context_window", False), ("windows", False), ("window_layers", False)],
)  # fmt: skip
def test_what_is_called_a_window_of_keys(name, may_be):
    """Catches the longest input, or a list, that is set to 3."""
    assert is_window(name) is may_be
