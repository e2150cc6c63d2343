"""Sizes at the top of a file are settings: its code is judged at other sizes than those that its author uses."""

import pytest

from conformkit.conformance.discovery.construction import _at_top
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run
from conformkit.spec.components import component

ATTENTION = """
import numpy as np
from types import SimpleNamespace

TOP

class CausalSelfAttention:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.query, self.key, self.value, self.proj = (rng.normal(size=(%W, %W)) * 0.2 for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (x @ w.T for w in (self.query, self.key, self.value))
        q, k, v = (a.reshape(B, T, %H, -1).swapaxes(1, 2) for a in (q, k, v))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(SCALE)
        scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ v
        return y.swapaxes(1, 2).reshape(B, T, C) @ self.proj.T
"""
STYLES = {
    "lower-case": ("n_embd, n_head = 16, 4", "n_embd", "n_head"),
    "capitals": ("EMB = 16\nHEADS = 4", "EMB", "HEADS"),
    "dictionary": ("config = {'n_embd': 16, 'n_head': 4}", "config['n_embd']", "config['n_head']"),
    "namespace": ("cfg = SimpleNamespace(n_embd=16, n_head=4)", "cfg.n_embd", "cfg.n_head"),
    "class": ("class Config:\n    n_embd = 16\n    n_head = 4", "Config.n_embd", "Config.n_head"),
}


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges attention in a style, with scores divided by the root of something."""

    def run_it(style, scale, table=""):
        top, width, heads = STYLES[style]
        source = ATTENTION.replace("TOP", top).replace("SCALE", scale).replace("%W", width).replace("%H", heads)
        (tmp_path / "gpt.py").write_text(source)
        if table:
            (tmp_path / "conform.toml").write_text(table)
        return run(RunRequest(str(tmp_path / "gpt.py"), only=("MHA-SCALE", "MHA-ORACLE"), discover=not table))

    return run_it


@pytest.mark.parametrize("style", STYLES)
def test_globals_are_set_for_each_size(judged, style):
    """Catches code that is judged at the one size that its author chose, and sizes that stay from the build before."""
    report = judged(style, "q.shape[-1]")
    assert report.conforms
    least, most = report.extents()["MultiHeadAttention"]["d_model"]
    assert least < most


def test_a_size_that_is_right_by_chance_is_red(judged):
    """Catches √4 heads in place of a width of 4, which is right at the sizes that stand at the top of the file."""
    report = judged("lower-case", "n_head")
    assert not report.conforms


@pytest.mark.parametrize(
    ("globals_", "told"),
    [
        ('{ n_embd = "d_model", n_head = "num_heads" }', ""),
        ('{ n_embd = "d_model", how_many = "num_heads" }', "gpt has no global how_many"),
    ],
    ids=["right", "unknown"],
)
def test_a_file_says_which_globals_are_sizes(judged, globals_, told):
    """Catches a key that is read and not used, and a name that is not there and is passed over."""
    table = (
        f'[components.MultiHeadAttention]\npath = "gpt:CausalSelfAttention"\nglobals = {globals_}\ncausal = "always"\n'
    )
    report = judged("lower-case", "q.shape[-1]", table)
    assert report.conforms == (not told)
    assert all(told in result.message for result in report.results if result.verdict is not Verdict.BLOCKED)


def test_the_ids_of_characters_are_no_settings():
    """Catches a vocabulary `stoi` whose entries F and D are taken for widths: d_ff seemed to be set, and was not."""
    names = ["n_embd", *(f"stoi.{character}" for character in "ABDFHLTV")]
    held = Item("gpt:", "numbers", [{"name": name, "default": "16"} for name in names], None, None)
    feed_forward = Item("gpt:FeedForward", "class", [], [{"name": "x"}], None)
    assert _at_top(component("FeedForward"), feed_forward, [held, feed_forward]) == {"n_embd": "d_model"}
