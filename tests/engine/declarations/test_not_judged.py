"""What is declared or there and cannot be judged costs its own clauses, is told, and is never a pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.api.embed import ClauseBroken, EmbeddedSuite
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.wording import verdict_line
from conformkit.conformance.runner import run
from tests.engine.conftest import ATTENTION

FEED_FORWARD = """
class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        self.up, self.down = np.ones((d_model, d_ff)), np.ones((d_ff, d_model))
        self.up_bias, self.down_bias = np.zeros(d_ff), np.zeros(d_model)

    def __call__(self, x):
        h = x @ self.up + self.up_bias
        erf = np.vectorize(__import__("math").erf)
        return h * 0.5 * (1 + erf(h / 2**0.5)) @ self.down + self.down_bias
"""
HEADS = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        open(r"{mark}", "w").close()
        self.heads, self.causal = num_heads, causal
        self.maps = [np.ones((d_model, d_model)) for _ in range(4)]

    def __call__(self, x):
        split = lambda a: np.swapaxes(a.reshape(*a.shape[:-1], self.heads, -1), -2, -3)
        q, k, v = (split(x @ m) for m in self.maps[:3])
        scores = q @ np.swapaxes(k, -1, -2) {scale}
        if self.causal:
            scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        out = np.swapaxes(e / e.sum(-1, keepdims=True) @ v, -2, -3)
        return out.reshape(*out.shape[:-2], -1) @ self.maps[3]
"""
TOOLS = "\ndef cross_entropy(logits, targets):\n    return 0.0\n"


def judged(folder: Path, source: str, declared: str = "", **options: object) -> Report:
    (folder / "own.py").write_text(source)
    (folder / "conform.toml").write_text(declared)
    return run(RunRequest(impl=str(folder / "own.py"), diagnose=False, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("profile", "name", "declared", "told"),
    [
        ("core", "FeedForward", "path = 'own_layers:FFN'", "No module named 'own_layers'"),
        ("core", "FeedForward", "path = 'own:FFN'", "own has no FFN"),
        ("lm", "get_batch", "path = 'own_data:batch'", "No module named 'own_data'"),
        ("lm", "get_batch", "path = 'own:nothing'", "own has no nothing"),
        ("lm", "AdamW", "path = 'own:cross_entropy'", "is a function, expected a class"),
    ],
    ids=["component-module", "component-name", "tool-module", "tool-name", "tool-kind"],
)
def test_what_is_declared_and_cannot_be_had_is_no_pass(tmp_path, profile, name, declared, told):
    found = judged(tmp_path, ATTENTION + TOOLS, f"\n[components.{name}]\n{declared}\n", profile=profile)
    assert not found.conforms
    assert told in found.unusable[name].problem
    assert found.unusable[name].where == "conform.toml, line 3"
    assert {r.verdict for r in found.results if r.clause.component == name} == {Verdict.NOT_RUN}
    assert "cannot be judged: " + name in verdict_line(found)
    assert any(r.verdict is Verdict.PASS for r in found.results) or profile == "lm"


def test_a_declared_module_that_does_not_import_ends_the_run(tmp_path):
    with pytest.raises(LoadFailure, match="No module named 'elsewhere'") as caught:
        judged(tmp_path, ATTENTION, "[implementation]\nmodule = 'elsewhere'\n")
    assert caught.value.where == "conform.toml, line 2"


def test_a_declared_way_to_generate_that_does_not_exist_is_no_pass(tmp_path):
    model = ATTENTION + "class TinyTransformerLM:\n    def __init__(self, vocab_size, d_model, num_heads, num_layers,"
    model += " d_ff, block_size):\n        pass\n    def __call__(self, ids):\n        return ids\n"
    found = judged(tmp_path, model, "[components.TinyTransformerLM.generate]\npath = 'sample'\n", only=("GEN-LENGTH",))
    assert "sample does not exist" in found.unusable["TinyTransformerLM.generate"].problem
    assert not found.conforms


def test_a_selection_does_not_look_at_what_it_does_not_need(tmp_path):
    mark = tmp_path / "built"
    source = ATTENTION + FEED_FORWARD + HEADS.format(mark=mark, scale="")
    declared = "[components.FeedForward]\n[components.PositionalEncoding]\npath = 'nowhere:PE'\n"
    found = judged(tmp_path, source, declared, only=("FFN-SHAPE",))
    assert found.conforms
    assert not found.unusable
    assert not mark.exists()
    judged(tmp_path, source, declared, only=("MHA-SHAPE",))
    assert mark.exists()


def test_what_is_left_out_is_named_in_the_verdict(tmp_path):
    declared = "[components.SelfAttention]\nskip = true\npath = 'nowhere:Attention'\n"
    found = judged(tmp_path, ATTENTION, declared, only=("SDPA-SCALE", "SA-SHAPE"))
    assert found.conforms
    assert verdict_line(found).endswith(
        "(spec 1.0) within what it declares: 1 of 2 binding clauses was judged; left out by conform.toml: SelfAttention"
    )
    by_itself = replace(found, found={"ScaledDotProductAttention": "gpt:attend"})
    assert verdict_line(by_itself).endswith("left out of the run: SelfAttention")


def test_a_component_that_is_constructed_otherwise_costs_only_itself(tmp_path):
    other = FEED_FORWARD.replace("d_model, d_ff, dropout=0.0", "options").replace("d_model", "5").replace("d_ff", "5")
    found = judged(tmp_path, ATTENTION + other, only=("SDPA-SCALE", "FFN-SHAPE"))
    assert [r.verdict for r in found.results] == [Verdict.PASS, Verdict.NOT_RUN]
    assert "requires options" in found.unusable["FeedForward"].problem
    assert verdict_line(found).startswith(str(tmp_path / "own.py") + " is judged only in part by ")


def test_weights_that_nothing_tells_are_not_guessed_in_wrong_code(tmp_path):
    """Would break if a wrong guess were judged, and its numbers explained by a mistake that is not there."""
    only = ("SDPA-SCALE", "MHA-SHAPE", "MHA-CAUSAL", "MHA-ORACLE")
    numbered = HEADS.format(mark=tmp_path / "built", scale="* 3")
    wrong = unpacked(numbered, "red", "green", "blue", "white")
    found = judged(tmp_path, ATTENTION + wrong, only=only)
    verdicts = {r.clause.id: r.verdict for r in found.results}
    assert (verdicts["MHA-SHAPE"], verdicts["MHA-ORACLE"]) == (Verdict.PASS, Verdict.NOT_RUN)
    told = " ".join(found.unusable["MultiHeadAttention"].advice)
    assert "yours: red " in told
    assert "the definition's: q.weight " in told
    assert '"red" = "' in told
    for told in (numbered, unpacked(numbered, "wq", "wk", "wv", "wo")):
        found = judged(tmp_path, ATTENTION + told, only=only)
        assert not found.unusable
        assert {r.clause.id: r.verdict for r in found.results}["MHA-ORACLE"] is not Verdict.NOT_RUN


def unpacked(code, *names):
    """Return the code with four names in place of a list."""
    q, k, v, out = (f"self.{name}" for name in names)
    named = code.replace("self.maps = [", f"{q}, {k}, {v}, {out} = (").replace("range(4)]", "range(4))")
    return named.replace("self.maps[:3]", f"({q}, {k}, {v})").replace("self.maps[3]", out)


def test_weights_that_only_their_order_tells_are_found_in_right_code(tmp_path):
    right = HEADS.format(mark=tmp_path / "built", scale="/ np.sqrt(q.shape[-1])")
    assert judged(tmp_path, ATTENTION + right, only=("MHA-PARAM-COUNT", "MHA-ORACLE")).conforms


def test_a_case_of_your_own_suite_fails_for_what_cannot_be_judged(tmp_path):
    (tmp_path / "own.py").write_text(ATTENTION)
    (tmp_path / "conform.toml").write_text("[components.FeedForward]\npath = 'nowhere:FFN'\n")
    suite = EmbeddedSuite(RunRequest(impl=str(tmp_path / "own.py"), isolation="none"))
    try:
        with pytest.raises(ClauseBroken, match="nowhere"):
            suite.settle("FFN-SHAPE")
    finally:
        suite.close()


LORA = """
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.lora_A, self.lora_B = nn.Parameter(torch.randn(2, d_model)), nn.Parameter(torch.zeros(d_ff, 2))

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x) + x @ self.lora_A.T @ self.lora_B.T))
"""


def test_low_rank_adapters_are_told_and_not_red(tmp_path):
    """Catches right LoRA called wrong by the count of its parameters, and wrong one that passes unjudged."""
    found = judged(tmp_path, LORA, only=("FFN-PARAM", "FFN-ORACLE", "FFN-SHAPE"))
    assert "low-rank adapters (lora_A, lora_B)" in found.unusable["FeedForward"].problem
    passed = [result.clause.id for result in found.results if result.verdict is Verdict.PASS]
    assert passed == ["FFN-SHAPE"]
    assert not any(result.verdict.red for result in found.results)
    assert not found.conforms
