"""Encoder-decoders as people write them, right and wrong: what one followed call says about each, and its parts."""

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.exports import bind_export
from conformkit.conformance.discovery.tracing.following import follow
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run
from conformkit.conformance.subject.component import Subject
from conformkit.spec.components import component
from conformkit.spec.variants import CANONICAL

TRANSLATOR = """
import math, torch
from torch import nn
from torch.nn import functional as F

class CrossAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d_model, d_model) for _ in range(4))
        self.heads = num_heads
    def forward(self, query, key, value, mask=None):
        B, T, C = query.shape
        q, k, v = (m(x).view(B, -1, self.heads, C // self.heads).transpose(1, 2)
                   for m, x in ((self.wq, query), (self.wk, key), (self.wv, value)))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))

class FFN(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.a, self.b = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    def forward(self, x):
        return self.b(F.relu(self.a(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attn, self.ffn = CrossAttention(d_model, num_heads), FFN(d_model, d_ff)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
    def forward(self, x, mask=None):
        y = self.n1(x)
        x = x + self.attn(y, y, y, mask)
        return x + self.ffn(self.n2(x))

class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attn, self.cross = CrossAttention(d_model, num_heads), CrossAttention(d_model, num_heads)
        self.ffn, self.n1, self.n2, self.n3 = FFN(d_model, d_ff), *(nn.LayerNorm(d_model) for _ in range(3))
    def forward(self, x, memory, tgt_mask=None, memory_mask=None):
        y = self.n1(x)
        x = x + self.attn(y, y, y, tgt_mask)
        y = self.n2(x)
        x = x + self.cross(y, memory, memory, memory_mask)
        return x + self.ffn(self.n3(x))

class Transformer(nn.Module):
    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_encoder_layers, num_decoder_layers,
                 d_ff, max_len=64):
        super().__init__()
        self.src, self.tgt = nn.Embedding(src_vocab_size, d_model), nn.Embedding(tgt_vocab_size, d_model)
        self.src_at, self.tgt_at = nn.Embedding(max_len, d_model), nn.Embedding(max_len, d_model)
        self.enc = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff) for _ in range(num_encoder_layers))
        self.dec = nn.ModuleList(DecoderLayer(d_model, num_heads, d_ff) for _ in range(num_decoder_layers))
        self.enc_norm, self.dec_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, tgt_vocab_size)
    def forward(self, src, tgt, src_mask, tgt_mask):
        x = self.src(src) + self.src_at(torch.arange(src.shape[1]))
        for layer in self.enc:
            x = layer(x, src_mask)
        memory = self.enc_norm(x)
        y = self.tgt(tgt) + self.tgt_at(torch.arange(tgt.shape[1]))
        for layer in self.dec:
            y = layer(y, memory, tgt_mask, src_mask)
        return self.head(self.dec_norm(y))
"""
COMMON = {"activation": "relu", "qkv_bias": True, "output_bias": True}
PARTS = {
    "CrossAttention": {"qkv_bias": True, "output_bias": True},
    "EncoderLayer": COMMON,
    "DecoderLayer": COMMON,
    "Transformer": COMMON | {"positions": "learned"},
}


@pytest.fixture
def read(tmp_path):
    """Return a function that follows one call of a component of the code, with a text in it replaced."""

    def one(name, old="", new=""):
        assert old in TRANSLATOR
        (tmp_path / "mt.py").write_text(TRANSLATOR.replace(old, new) if old else TRANSLATOR)
        with imported(RunRequest(str(tmp_path / "mt.py"), isolation="none")) as (implementation, _):
            targets = {"op": "describe", "targets": {name: f"mt:{name}"}, "module": None}
            export = implementation.request(targets).header["exports"][name]
            config = parse_config(f'[components.{name}]\npath = "mt:{name}"\n')
            return follow(Subject(bind_export(component(name), export, config, None), implementation))

    return one


@pytest.mark.parametrize(("name", "found"), PARTS.items(), ids=PARTS)
def test_a_right_part_is_wholly_explained(read, name, found):
    """Catches a part that is not read, weights that are not placed, and a right part that is taken for a mistake."""
    seen = read(name)
    assert (seen.reading.findings, seen.reading.open) == ([], [])
    assert seen.variants[0] == CANONICAL.but(**found)
    assert seen.rules


MISTAKES = {
    "scale": ("math.sqrt(q.shape[-1])", "math.sqrt(C)", "scores × 0.2041 = 1/√d_model"),
    "no-memory": ("self.cross(y, memory, memory", "self.cross(y, y, y", "read what queries read; expected the memory"),
    "values-elsewhere": ("self.cross(y, memory, memory", "self.cross(y, memory, y", "read different things"),
    "norm-on-path": ("x = x + self.cross(", "x = y + self.cross(", "attention to the memory goes through the norm"),
    "sees-later": ("layer(y, memory, tgt_mask, src_mask)", "layer(y, memory, None, src_mask)", "no mask; expected"),
    "no-residual": ("return x + self.ffn(self.n3(x))", "return self.ffn(self.n3(x))", "no residual path"),
    "other-activation": ("F.relu(", "F.elu(", "is none of the activations"),
    "positions": ("self.tgt_at(torch.arange(tgt.shape[1]))", "self.tgt_at(torch.arange(tgt.shape[1]).flip(0))",
                  "neither a learned table"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_read_off_and_the_rest_stays_explained(read, old, new, says):
    """Catches a mistake that one call of an encoder-decoder shows and that is not told, or that hides all else."""
    reading = read("Transformer", old, new).reading
    assert any(says in finding.told for finding in reading.findings), (reading.findings, reading.open)
    assert reading.conclusive
    assert {"decoder.layers.1.cross_attention.out.weight", "tgt_embedding.weight"} <= reading.weights.keys()


def test_attention_that_is_called_in_another_order_is_open_not_a_mistake(read):
    """Catches a call with keys for queries that is taken for attention that reads the wrong things."""
    reading = read(
        "CrossAttention", "query, key, value, mask=None):", "a, b, c, mask=None):\n        key, query, value = a, b, c"
    ).reading
    assert reading.open
    assert not reading.conclusive


def test_a_mistake_in_an_encoder_decoder_is_judged(tmp_path):
    """Catches wrong code that is left out since no variant gives its numbers."""
    source = TRANSLATOR.replace("math.sqrt(q.shape[-1])", "math.sqrt(C)")
    for ours, theirs in (("CrossAttention", "MHA"), ("coderLayer", "coderStage"), ("Transformer", "Translator")):
        source = source.replace(ours, theirs)
    (tmp_path / "mt.py").write_text(source.replace("num_heads", "n_heads").replace("d_model", "dim"))
    report = run(RunRequest(str(tmp_path / "mt.py"), only=("XATTN",), profile="seq2seq", discover=True))
    red = {result.clause.id for result in report.results if result.verdict.red and report.breaks(result)}
    assert dict(report.found)["CrossAttention"] == "mt:MHA"
    assert red == {"XATTN-ORACLE"}
