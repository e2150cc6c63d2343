"""conform adapt on names and settings that say one thing in one place and another in others."""

import textwrap
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.meanings import passed
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import component

CAUSAL = """
    import torch
    from torch import nn

    class CausalLayer(nn.TransformerEncoderLayer):
        def __init__(self, d_model, nhead, dim_feedforward):
            super().__init__(d_model, nhead, dim_feedforward, 0.0, "gelu", batch_first=True, norm_first=True)

        def forward(self, src, src_mask=None, is_causal=False):
            mask = torch.ones(src.shape[1], src.shape[1], dtype=torch.bool).triu(1)
            return super().forward(src, mask if src_mask is None else src_mask)
"""
SETTINGS = """
    from torch import nn

    DEFAULTS = {"emb_dim": 64, "hidden_dim": 256, "n_heads": 4, "context_length": 128}

    class FeedForward(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            if set(cfg) - set(DEFAULTS):
                raise ValueError("unknown settings")
            cfg = {**DEFAULTS, **cfg}
            outer, inner = cfg["emb_dim"], cfg["hidden_dim"]
            self.up, self.down = nn.Linear(outer, inner), nn.Linear(inner, outer)

        def forward(self, x):
            return self.down(nn.functional.gelu(self.up(x)))
"""
LENGTHS = """
    import torch
    from torch import nn

    def settings(vocab=64, width=64, context=128):
        from types import SimpleNamespace
        return SimpleNamespace(vocab=vocab, width=width, context=context)

    class Model(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            self.context = cfg.context
            self.embed, self.head = nn.Embedding(cfg.vocab, cfg.width), nn.Linear(cfg.width, cfg.vocab)

        def forward(self, ids):
            if ids.shape[1] > {limit}:
                raise ValueError("too long")
            return self.head(self.embed(ids))
"""
EMBEDDING = """
    import math

    from torch import nn

    class TokenEmbedding(nn.Module):
        def __init__(self, vocab_size, emb_size):
            super().__init__()
            self.embedding, self.emb_size = nn.Embedding(vocab_size, emb_size), emb_size

        def forward(self, tokens):
            return self.embedding(tokens) * math.sqrt(self.emb_size)
"""


def drafted(folder: Path, code: str, profile: str = "core") -> Draft:
    (folder / "theirs.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return draft(RunRequest(str(folder / "theirs.py"), profile=profile), {})


@pytest.mark.parametrize(
    ("arguments", "outer", "inner"),
    [
        (("hidden", "ffn"), "hidden", "ffn"),
        (("hidden_dim", "d_ff"), "hidden_dim", "d_ff"),
        (("width", "hidden"), "width", "hidden"),
        (("d_model", "hidden"), "d_model", "hidden"),
    ],
)
def test_hidden_is_the_width_of_the_model_where_another_argument_is_the_inner_one(arguments, outer, inner):
    parameters = [{"name": name, "required": True} for name in arguments]
    known, missing, unknown = passed(parameters, component("FeedForward"))
    assert known == {outer: "d_model", inner: "d_ff"}
    assert not missing
    assert not unknown


@pytest.mark.parametrize("layers", ["n", "L", "N", "num_layers"])
def test_one_letter_may_be_the_number_of_layers(layers):
    parameters = [{"name": name, "required": False} for name in ("vocab", "d", "h", layers, "f", "context")]
    known, missing, _ = passed(parameters, component("TinyTransformerLM"))
    assert known[layers] == "num_layers"
    assert not missing


def test_a_flag_that_changes_nothing_is_no_causality(tmp_path):
    (found,) = [p for p in drafted(tmp_path, CAUSAL).proposals if p.component == "TransformerBlock"]
    assert found.table["causal"] == "always"
    assert found.table["call"] == ["x"]


def test_a_flag_that_matters_is_passed(tmp_path):
    code = CAUSAL.replace("mask if src_mask is None else", "mask if is_causal else")
    (found,) = [p for p in drafted(tmp_path, code).proposals if p.component == "TransformerBlock"]
    assert found.table["causal"] == "flag"


def test_a_dictionary_of_sizes_holds_settings_whatever_it_is_called(tmp_path):
    (found,) = [p for p in drafted(tmp_path, SETTINGS).proposals if p.component == "FeedForward"]
    given = found.table["construct"]["cfg"]
    assert (given["emb_dim"], given["hidden_dim"]) == ("d_model", "d_ff")


@pytest.mark.parametrize(("limit", "passed_on"), [("self.context", True), ("10**6", False)])
def test_a_longest_input_is_left_out_only_if_longer_ones_are_accepted(tmp_path, limit, passed_on):
    found = drafted(tmp_path, LENGTHS.replace("{limit}", limit))
    (model,) = [p for p in found.proposals if p.component == "TinyTransformerLM"]
    assert ("context" in model.table["construct"]["cfg"]["arguments"]) == passed_on


def test_a_scaled_embedding_is_found_without_a_model_that_holds_it(tmp_path):
    found = drafted(tmp_path, EMBEDDING, "seq2seq")
    assert [p.component for p in found.proposals] == ["TokenEmbedding"]
    assert "embedding_scale = true" in found.text()
