"""conform adapt on parts of an encoder-decoder: other names, places, polarities; no mistake is declared away."""

import textwrap
import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.engine.request import RunRequest

CODE = """
    import math

    import torch
    from torch import nn


    class Mixer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

        def forward(self, query, key, value, blocked=None):
            maps = zip((self.q, self.k, self.v), (query, key, value))
            q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f, x in maps)
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            if blocked is not None:
                scores = scores.masked_fill(blocked, -math.inf)
            return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


    class EncBlock(nn.Module):
        def __init__(self, width, heads, hidden):
            super().__init__()
            self.attn, self.norm1, self.norm2 = Mixer(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

        def forward(self, x, blocked=None):
            y = self.norm1(x)
            x = x + self.attn(y, y, y, blocked)
            return x + self.mlp(self.norm2(x))
"""
HIDING = {"mask": {"true": "hide"}}


def drafted(folder: Path, code: str) -> Draft:
    """Draft for one module."""
    (folder / "theirs.py").write_text(textwrap.dedent(code))
    return draft(RunRequest(str(folder / "theirs.py"), config=Config(), profile="seq2seq"), {})


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Draft:
    return drafted(tmp_path_factory.mktemp("other_names"), CODE)


def test_parts_of_other_names_give_the_definitions_numbers(found):
    """Would break if only the contract's own names of an encoder-decoder were found."""
    paths = {p.component: p.table["path"] for p in found.proposals}
    assert paths == {"CrossAttention": "theirs:Mixer", "EncoderLayer": "theirs:EncBlock"}
    assert all(proposal.matched for proposal in found.proposals)


def test_a_mask_whose_true_hides_is_found_and_reported(found):
    """Would break if a mask of another name were left out, or read with the contract's polarity."""
    tables = tomllib.loads(found.text())["components"]
    assert {name: table["masks"] for name, table in tables.items()} == dict.fromkeys(tables, HIDING)
    assert tables["EncoderLayer"]["call"] == ["x", "mask"]
    assert any("hides, as tried" in doubt for doubt in found.doubts())


def test_a_part_without_candidates_is_reported(found):
    """Would break if nothing were said about the missing half of a half-built encoder-decoder."""
    assert {"DecoderLayer", "Transformer"} <= found.missing.keys()


def test_an_encoder_decoder_is_distinguished_from_a_language_model(tmp_path):
    """Would break if a user who does not know profiles got a draft of parts and no hint about the whole."""
    (tmp_path / "theirs.py").write_text(
        "class Translator:\n    def __init__(self, words): ...\n    def __call__(self, source, target): ...\n"
    )
    found = draft(RunRequest(str(tmp_path / "theirs.py"), config=Config()), {})
    assert any("theirs:Translator" in line and "--profile seq2seq" in line for line in found.left_out)


@pytest.mark.full(guard="test_a_mask_whose_true_hides_is_found_and_reported")
def test_a_mask_of_the_contracts_own_name_keeps_its_meaning(tmp_path):
    """Would break if a mask that a layer alone reads the wrong way round were declared as intended."""
    code = CODE.replace("EncBlock", "EncoderLayer").replace("blocked", "mask").replace("fill(mask", "fill(~mask")
    code = code.replace("y, y, y, mask", "y, y, y, None if mask is None else ~mask")
    text = drafted(tmp_path, code).text().partition("[components.EncoderLayer]")[2]
    assert "\nmasks" not in text
    assert '# masks = { mask = { true = "hide" } }' in text


TWO_SIDED = """
    import torch
    from torch import nn


    class Conditional(nn.Module):
        def __init__(self, src_words, tgt_words, width, heads, layers, hidden):
            super().__init__()
            self.src, self.tgt = nn.Embedding(src_words, width), nn.Embedding(tgt_words, width)
            sizes = dict(dim_feedforward=hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.inner = nn.Transformer(width, heads, layers, layers, **sizes)
            self.out = nn.Linear(width, tgt_words)

        def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_padding_mask):
            masks = (src_mask, tgt_mask, None, src_padding_mask, tgt_padding_mask, memory_padding_mask)
            return self.out(self.inner(self.src(src), self.tgt(trg), *masks))

        def encode(self, src, src_mask):
            return self.inner.encoder(self.src(src), src_mask)
"""


@pytest.mark.full(guard="test_halves_that_cannot_hide_padding_are_none_of_the_contracts")
def test_padding_that_is_said_apart_from_causality_is_passed_apart(tmp_path):
    """Would break if a model around torch's, of whatever name, were left out for masks that the contract lacks."""
    found = drafted(tmp_path, TWO_SIDED)
    table = tomllib.loads(found.text())["components"]["Transformer"]
    passed = {"src_mask": "None", "tgt_mask": "causality", "src_padding_mask": "src_padding"}
    assert passed.items() <= table["call"].items()


TABLED = """
    import torch
    from torch import nn


    class Translator(nn.Module):
        def __init__(self, src_words, tgt_words, width, heads, layers, hidden, device):
            super().__init__()
            self.src, self.tgt = nn.Embedding(src_words, width), nn.Embedding(tgt_words, width)
            angles = torch.arange(70)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
            self.register_buffer("table", torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :width])
            sizes = dict(dim_feedforward=hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.inner = nn.Transformer(width, heads, layers, layers, **sizes).to(device)
            self.out = nn.Linear(width, tgt_words)

        def forward(self, src, tgt):
            later = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
            src, tgt = (words(ids) + self.table[: ids.size(1)] for words, ids in ((self.src, src), (self.tgt, tgt)))
            return self.out(self.inner(src, tgt, tgt_mask=later))
"""


@pytest.mark.full(guard="test_halves_that_cannot_hide_padding_are_none_of_the_contracts")
def test_a_table_of_the_code_limits_a_whole_model(tmp_path):
    """Would break if a model for 70 positions were compared with the definition at 600, or a device had no value."""
    table = tomllib.loads(drafted(tmp_path, TABLED).text())["components"]["Transformer"]
    assert table["limits"]["tokens"] == {"max": 70}
    assert table["construct"]["device"] == "'cpu'"


@pytest.mark.full(guard="test_a_mask_whose_true_hides_is_found_and_reported")
def test_a_whole_in_whose_masks_ones_hide_is_drafted():
    """Would break if a mask that must be given, and should hide nothing, were passed as ones alone."""
    package = Path(__file__).parents[2] / "right_seq2seq" / "ones_hide"
    text = draft(RunRequest(str(package), profile="seq2seq", config=Config()), {}).text()
    whole = tomllib.loads(text)["components"]["Transformer"]
    assert whole["call"]["dec_padding_mask"] == "memory_mask"
    assert {mask: form["true"] for mask, form in whole["masks"].items()} == dict.fromkeys(
        ("src_mask", "tgt_mask", "memory_mask"), "hide"
    )


MEMORY_FIRST = """
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.num_heads = num_heads
            self.q_layer, self.kv_layer = nn.Linear(d_model, d_model), nn.Linear(d_model, 2 * d_model)
            self.out_layer = nn.Linear(d_model, d_model)

        def forward(self, x, y, mask):
            q = self.q_layer(x).view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)
            k, v = self.kv_layer(y).view(*y.shape[:2], self.num_heads, -1).transpose(1, 2).chunk(2, dim=-1)
            scores = q @ k.mT / q.shape[-1] ** 0.5
            weights = (scores if mask is None else scores.masked_fill(mask == 0, -1e9)).softmax(-1)
            return self.out_layer((weights @ v).transpose(1, 2).reshape(x.shape))


    class DecoderLayer(nn.Module):
        def __init__(self, d_model, ffn_hidden, num_heads, drop_prob):
            super().__init__()
            self.attention, self.cross = Attention(d_model, num_heads), Attention(d_model, num_heads)
            self.ffn = nn.Sequential(nn.Linear(d_model, ffn_hidden), nn.ReLU(), nn.Linear(ffn_hidden, d_model))
            self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
            self.dropout = nn.Dropout(drop_prob)

        def forward(self, x, y, self_attention_mask, cross_attention_mask):
            y = self.norm1(y + self.dropout(self.attention(y, y, self_attention_mask)))
            y = self.norm2(y + self.dropout(self.cross(y, x, cross_attention_mask)))
            return self.norm3(y + self.dropout(self.ffn(y)))
"""


@pytest.mark.full(guard="test_a_mask_whose_true_hides_is_found_and_reported")
def test_a_memory_before_the_target_is_found_by_the_length_of_the_result(tmp_path):
    """Would break if `x` were the target whatever stands behind it, or weights that one call shows were not placed."""
    found = drafted(tmp_path, MEMORY_FIRST)
    table = tomllib.loads(found.text())["components"]["DecoderLayer"]
    assert table["call"] == ["memory", "x", "tgt_mask", "memory_mask"]
    assert table["weights"]["cross.kv_layer.weight"].startswith("cross_attention.k.weight, cross_attention.v.weight")
    assert [p.matched for p in found.proposals if p.component == "DecoderLayer"] == [True]
