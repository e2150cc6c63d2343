"""conform adapt on models whose head stands outside of them."""

import tomllib

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.engine.request import RunRequest

TRUNK = """
import torch
import torch.nn.functional as F
from torch import nn

class Trunk(nn.Module):
    def __init__(self, symbols, width, heads, layers, inner, longest):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(longest, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, inner, 0.0, F.gelu, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.last = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.symbols(ids) + self.places(torch.arange(ids.shape[1]))
        later = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
        for layer in self.layers:
            x = layer(x, src_mask=later)
        return self.last(x)

def loss(trunk, head, ids):
    return F.cross_entropy(head(trunk(ids[:, :-1])).flatten(0, 1), ids[:, 1:].flatten())
"""


def test_a_model_that_returns_states_is_judged_with_a_head_beside_it(tmp_path):
    """Would break if code in which nothing returns logits were taken for code without a model."""
    path = tmp_path / "mine.py"
    path.write_text(TRUNK, encoding="utf-8")
    found = draft(RunRequest(str(path), config=Config()), {})
    whole = tomllib.loads(found.text())["components"]["TinyTransformerLM"]
    assert (whole["path"], whole["head"]["object"]) == ("mine:Trunk", "torch.nn:Linear")
    assert any("it returns states, no logits" in doubt for doubt in found.doubts())
