"""Models that return states, with a head of their own that training scripts apply."""

import pytest

from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.own_heads import own_head
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, source, target, last):
        super().__init__()
        self.source, self.target, self.HEAD = source, target, last
    def forward(self, src, tgt):
        return self.target(tgt) + self.source(src).mean(1, keepdim=True)

def build(src_vocab, tgt_vocab, N, d_model, h, d_ff):
    return Model(nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model), LAST)
"""
TABLE = {
    "path": "mt:build", "factory": True, "call": ["src", "tgt"],
    "construct": {"src_vocab": "src_vocab_size", "tgt_vocab": "tgt_vocab_size", "N": "num_encoder_layers",
                  "d_model": "d_model", "h": "num_heads", "d_ff": "d_ff"},
    "limits": {"num_decoder_layers": "num_encoder_layers"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "last", "found"),
    [
        ("generator", "nn.Sequential(nn.Linear(d_model, tgt_vocab), nn.LogSoftmax(-1))", "generator"),
        ("onto_words", "nn.Linear(d_model, tgt_vocab)", "onto_words"),
        ("parts", "nn.ModuleDict({'norm': nn.LayerNorm(d_model), 'out': nn.Linear(d_model, tgt_vocab)})", "parts.out"),
        ("other", "nn.Linear(d_model, src_vocab)", ""),
    ],
    ids=["sequential", "any-name", "inside-another", "none"],
)
def test_a_head_beside_the_call_is_found_by_its_shape(tmp_path, name, last, found):
    """Catches a head that is found by its name alone, one that makes no logits, and a model that is then left out."""
    (tmp_path / "mt.py").write_text(MODEL.replace("HEAD", name).replace("LAST", last))
    with imported(RunRequest(str(tmp_path / "mt.py"), isolation="none")) as (implementation, _):
        bench = Bench(implementation)
        with pytest.raises(TROUBLE):
            bench.answers("Transformer", TABLE)
        assert own_head("Transformer", TABLE, bench) == found


HALVES = MODEL.replace(
    "    def forward(self, src, tgt):\n        return",
    "    def encode(self, src, mask):\n        return src\n"
    "    def decode(self, memory, mask, tgt, tgt_mask):\n        src = memory\n        return",
)


def test_a_model_without_a_call_is_called_half_after_half(tmp_path):
    """Catches an encoder-decoder whose scripts call `encode` and `decode` that is left out, the whole of it."""
    (tmp_path / "mt.py").write_text(HALVES.replace("HEAD", "last").replace("LAST", "nn.Linear(d_model, tgt_vocab)"))
    with imported(RunRequest(str(tmp_path / "mt.py"), isolation="none")) as (implementation, _):
        table = {**TABLE, "call": ["src", "tgt", "None", "None"]}
        assert own_head("Transformer", table, Bench(implementation)) == "last"
