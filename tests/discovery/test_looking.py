"""Drafts that look at one call first: what it says is tried before all else, and believed only if numbers agree."""

from __future__ import annotations

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.diagnosis.undeclared import Search
from conformkit.conformance.discovery import bench
from conformkit.conformance.discovery.proposal import NAME_ALONE
from conformkit.conformance.discovery.tracing.following import Followed
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.variants import CANONICAL

from .tracing.test_reading import FOUND, GPT

MODEL = "TinyTransformerLM"
WHOLES = {"MultiHeadAttention", "TransformerBlock", MODEL}
RELU = GPT.replace("F.gelu(", "F.relu(").replace("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-6)")


GROUPED = """
import math, torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, n_kv_heads):
        super().__init__()
        self.heads, self.shared, self.width = num_heads, n_kv_heads, d_model // num_heads
        self.q, self.o = nn.Linear(d_model, d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.k, self.v = (nn.Linear(d_model, n_kv_heads * self.width, bias=False) for _ in range(2))
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, -1, self.width).transpose(1, 2) for f in (self.q, self.k, self.v))
        k, v = (z.repeat_interleave(self.heads // self.shared, dim=1) for z in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
        return self.o((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, C))
"""


@pytest.fixture
def drafted(tmp_path):
    """Return a function that drafts for a source, and gives the proposals by component."""

    def one(source):
        (tmp_path / "mypkg.py").write_text(source, encoding="utf-8")
        found = draft(RunRequest(str(tmp_path / "mypkg.py"), config=Config(), isolation="none"), {})
        return found, {proposal.component: proposal for proposal in found.proposals}

    return one


@pytest.fixture
def searched(monkeypatch):
    """Return the components of which variants were tried one after another."""
    names = []
    monkeypatch.setattr(Search, "_candidates", lambda _, trial: names.append(trial.subject.name) or iter(()))
    return names


def test_the_variant_of_a_right_model_is_read_off_not_searched_for(drafted, searched):
    """Catches a search through the product of choices where one call says each of them."""
    found, proposals = drafted(RELU)
    assert all(proposals[name].matched for name in ("MultiHeadAttention", "TransformerBlock", MODEL))
    choices = {entry.choice: entry.actual for entry in found.choices}
    assert choices.items() >= {"activation": "relu", "norm_eps": 1e-6, "positions": "learned"}.items()
    assert not WHOLES & set(searched)


def test_a_mistake_does_not_hide_the_model_that_holds_it(drafted, searched):
    """Catches a whole that is left out, or searched for in vain, since one part of it is wrong."""
    _, proposals = drafted(GPT.replace("math.sqrt(k.size(-1))", "math.sqrt(C)"))
    model = proposals[MODEL]
    assert {f.path for f in model.mistakes} == {"blocks.0.attention", "blocks.1.attention"}
    assert model.table["variant"] == FOUND
    assert model.table["weights"]["h.{i}.attn.c_attn.weight"].endswith("-> (s h d) m")
    assert any("scores × " in doubt for doubt in model.doubts)
    assert not WHOLES & set(searched)


def test_wrong_attention_is_recognized_whatever_its_name_is(drafted):
    """Catches a mistake in attention called `Talk` that nobody judges, since no variant gives its numbers."""
    talking = GPT.replace("Attention(", "Talk(")
    (_, right), (_, wrong) = drafted(talking), drafted(talking.replace("math.sqrt(k.size(-1))", "math.sqrt(C)"))
    assert right["MultiHeadAttention"].matched
    assert wrong["MultiHeadAttention"].table["path"] == "mypkg:Talk"
    assert wrong["MultiHeadAttention"].seen() == ["scores × 0.2041 = 1/√d_model; expected 1/√d_head = 0.4082"]


def test_heads_that_share_keys_in_another_order_are_seen_though_the_code_may_share_none(drafted):
    """Catches code that is told its number of heads of keys, and followed with as many keys as queries only."""
    tiled = GROUPED.replace(
        "z.repeat_interleave(self.heads // self.shared, dim=1)", "z.repeat(1, self.heads // self.shared, 1, 1)"
    )
    (_, right), (_, wrong) = drafted(GROUPED), drafted(tiled)
    assert right["MultiHeadAttention"].matched
    assert right["MultiHeadAttention"].mistakes == []
    assert wrong["MultiHeadAttention"].seen() == [f"heads share {name} in the order [0, 1, 0, 1]" for name in "kv"]
    assert wrong["MultiHeadAttention"].table["variant"]["kv_heads"] == "num_heads // 2"


def test_attention_that_hides_nothing_is_left_to_its_author(drafted):
    """Catches a decision about code for complete texts, which is as likely as a forgotten mask."""
    _, proposals = drafted(GPT.replace("scores.masked_fill(hidden, -math.inf)", "scores"))
    assert proposals[MODEL].mistakes == []
    assert NAME_ALONE in proposals[MODEL].doubts
    assert any("later positions" in doubt for doubt in proposals["MultiHeadAttention"].doubts)


def test_what_a_call_says_is_believed_only_if_numbers_agree(drafted, monkeypatch):
    """Catches a worker whose record tells of another variant than what it computes."""
    lie = Followed(ReadOff(), (CANONICAL.but(activation="silu", norm_eps=1e-3),), None)
    monkeypatch.setattr(bench, "follow", lambda _: lie)
    found, proposals = drafted(RELU)
    assert proposals["TransformerBlock"].matched
    assert {e.choice: e.actual for e in found.choices}.items() >= {"activation": "relu", "norm_eps": 1e-6}.items()


PROBABILITIES = GPT.replace("return self.head(self.ln_f(x))", "return self.head(self.ln_f(x)).softmax(-1)")
COMPARED = """
def train(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())
"""


def test_probabilities_are_a_mistake_only_where_a_loss_takes_them_for_logits(drafted, searched):
    """Catches a style that is judged, a second softmax in the author's own loss that is not, and a vain search."""
    (_, alone), (_, compared) = drafted(PROBABILITIES), drafted(PROBABILITIES + COMPARED)
    assert alone[MODEL].mistakes == []
    assert compared[MODEL].seen() == ["probabilities are returned; expected logits"]
    assert MODEL not in searched
