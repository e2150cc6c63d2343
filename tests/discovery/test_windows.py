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


@pytest.mark.parametrize(
    ("name", "may_be"),
    [("window", True), ("window_size", True), ("sliding_window", True), ("local_window", True), ("attn_window", True),
     ("context_window", False), ("windows", False), ("window_layers", False)],
)  # fmt: skip
def test_what_is_called_a_window_of_keys(name, may_be):
    """Catches the longest input, or a list, that is set to 3."""
    assert is_window(name) is may_be
