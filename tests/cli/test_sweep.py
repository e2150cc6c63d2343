"""benchmarks/sweep: settings that are small and fit together, and rows that say what a report says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SWEEP = Path(__file__).parents[2] / "benchmarks" / "sweep"
SIZES = {"vocab_size": 13, "num_layers": 2, "block_size": 9}


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SWEEP)

    def load(name):
        spec = importlib.util.spec_from_file_location(f"sweep_{name}", SWEEP / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(importlib.import_module("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_settings_become_small_under_the_names_of_the_family(script):
    """Would break if a usual name were set that the family calls otherwise, or a window for a width."""
    settings = {"n_embd": 768, "n_inner": None, "vocab_size": 50257, "mlp_dim": 4096, "max_window_size": 512,
                "attn_pdrop": 0.1, "pad_token_id": 7, "tie_weights": True, "n_layer": 12}  # fmt: skip
    aliases = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer"}
    assert script("small").small(settings, aliases, **SIZES) == {
        "n_embd": 32, "vocab_size": 13, "mlp_dim": 16, "attn_pdrop": 0.0, "pad_token_id": -1, "n_layer": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("pass", "pass"), "conforms"),
        (("fail", "pass"), "not A-1"),
        (("pass", "fail"), "conforms; as SHOULD, not A-2"),
        (("blocked", "blocked"), "not judged: nothing could be compared"),
    ],
    ids=["right", "wrong", "advice", "nothing-judged"],
)
def test_a_row_says_what_the_report_says(verdicts, words, script):
    """Would break if a model of which nothing could be judged were said to conform."""
    levels = ("MUST", "SHOULD")
    clauses = [
        {"id": f"A-{n}", "level": level, "verdict": verdict, "message": ""}
        for n, (level, verdict) in enumerate(zip(levels, verdicts, strict=True), 1)
    ]
    assert script("__main__").summary({"clauses": clauses}) == (words, verdicts.count("pass"))
