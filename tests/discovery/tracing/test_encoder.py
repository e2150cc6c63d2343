"""Encoders of texts as people write them, right and wrong: what one followed call says about each."""

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.exports import bind_export
from conformkit.conformance.discovery.tracing.following import follow
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.subject.component import Subject
from conformkit.spec.components import base_of, component

NAME = "BertModel"
BERT = """
import math, torch
from torch import nn
from torch.nn import functional as F

class Layer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.heads, self.qkv, self.out = num_heads, nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model, eps=1e-12), nn.LayerNorm(d_model, eps=1e-12)
    def forward(self, x, mask):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
        x = self.norm1(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)))
        return self.norm2(x + self.fc2(F.gelu(self.fc1(x))))

class BertModel(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments=2):
        super().__init__()
        self.words, self.at = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.kinds, self.norm = nn.Embedding(num_segments, d_model), nn.LayerNorm(d_model, eps=1e-12)
        self.layers = nn.ModuleList(Layer(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.pooler = nn.Linear(d_model, d_model)
    def forward(self, ids, segments, mask=None):
        x = self.norm(self.words(ids) + self.at(torch.arange(ids.shape[1])) + self.kinds(segments))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))
"""
POOLED = ("return x, torch.tanh(self.pooler(x[:, 0]))", "return x")


@pytest.fixture
def read(tmp_path):
    """Return a function that follows one call of the encoder, with texts in it replaced."""

    def one(*changes):
        source = BERT
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        (tmp_path / "mybert.py").write_text(source)
        with imported(RunRequest(str(tmp_path / "mybert.py"), isolation="none")) as (implementation, _):
            targets = {"op": "describe", "targets": {NAME: f"mybert:{NAME}"}, "module": None}
            export = implementation.request(targets).header["exports"][NAME]
            config = parse_config(f'[components.{NAME}]\npath = "mybert:{NAME}"\n')
            return follow(Subject(bind_export(component(NAME), export, config, None), implementation))

    return one


@pytest.mark.parametrize(
    ("changes", "found"),
    [([], {}), ([POOLED, ("        self.pooler = nn.Linear(d_model, d_model)\n", "")], {"pooler": False})],
    ids=["pooler", "no-pooler"],
)
def test_a_right_encoder_is_wholly_explained(read, changes, found):
    """Catches a table, norm or pooler that is not read, and a right encoder that is taken for a wrong one."""
    seen = read(*changes)
    assert (seen.reading.findings, seen.reading.open) == ([], [])
    assert seen.variants[0] == base_of(NAME).but(**found)
    assert seen.rules


LATER = """scores = scores.masked_fill(torch.ones(T, T).triu(1) > 0, -math.inf)
        if mask is not None:"""
MISTAKES = {
    "no-residual": ("self.norm2(x + self.fc2(F.gelu(self.fc1(x))))", "self.norm2(self.fc2(F.gelu(self.fc1(x))))",
                    "no residual path"),
    "scale": ("math.sqrt(q.shape[-1])", "math.sqrt(C)", "scores × 0.2041 = 1/√d_model"),
    "no-segments": (" + self.kinds(segments)", "", "parameters that are never used: kinds.weight"),
    "causal": ("if mask is not None:", LATER, "a causal mask; expected none"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_read_off_and_the_rest_stays_explained(read, old, new, says):
    """Catches a mistake that one call of an encoder shows and that is not told, or that hides all else."""
    reading = read((old, new)).reading
    assert any(says in finding.told for finding in reading.findings), (reading.findings, reading.open)
    assert reading.conclusive
    assert {"layers.1.attention.out.weight", "embedding.weight", "pooler.weight"} <= reading.weights.keys()
