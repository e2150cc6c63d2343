"""A run finds by itself what has other names than the contract's: no file, no second command."""

import pytest

from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.discovery.completing import Completed, set_aside
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.drafting import _idle
from conformkit.conformance.discovery.encoder_decoder import hidden_by_what_shows
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.tracing.reading import Discrepancy
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import DifferingPart, Report, Result, Verdict
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.runner import run
from conformkit.spec.clauses import clause

ATTENTION = """
import numpy as np

class CausalSelfAttention:
    def __init__(self, n_embd, n_head):
        rng = np.random.default_rng(0)
        self.n_head = n_head
        self.query, self.key, self.value, self.proj = (rng.normal(size=(n_embd, n_embd)) * 0.2 for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            (x @ w.T).reshape(B, T, self.n_head, -1).swapaxes(1, 2) for w in (self.query, self.key, self.value)
        )
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH)
        scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ v
        return (y.swapaxes(1, 2).reshape(B, T, C) @ self.proj.T)CHANGED
"""
RIGHT = ATTENTION.replace("WIDTH", "q.shape[-1]").replace("CHANGED", "")


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges a file, with a conform.toml or without one."""

    def run_it(source, only=("MHA-SCALE", "MHA-ORACLE"), table="", **options):
        (tmp_path / "gpt.py").write_text(source)
        if table:
            (tmp_path / "conform.toml").write_text(table)
        return run(RunRequest(str(tmp_path / "gpt.py"), only=only, **{"discover": True, **options}))

    return run_it


def test_what_is_called_otherwise_is_found_and_judged(judged):
    """Catches a run that refuses ordinary code, and one that does not say what it took for what."""
    report = judged(RIGHT)
    assert report.conforms
    assert dict(report.found) == {"MultiHeadAttention": "gpt:CausalSelfAttention"}
    assert "CausalSelfAttention is taken for MultiHeadAttention" in report.notes[0]


UNSCALED = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.q, self.k, self.v, self.o = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (w(x).view(B, T, self.n_head, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) + torch.full((T, T), -torch.inf, dtype=x.dtype).triu(1)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))
"""
BIASES = """

class RelativeBias(nn.Module):
    def forward(self, length):
        return torch.zeros(length)
"""


@pytest.mark.full
@pytest.mark.parametrize(("more", "red"), [("", ["MHA-SCALE-DHEAD"]), (BIASES, [])], ids=["alone", "as-in-t5"])
def test_scores_without_a_scale_are_not_red_where_positions_are_biases(judged, more, red):
    """Catches T5's attention that is red for what T5 does on purpose, and a forgotten scale that is excused."""
    report = judged(UNSCALED + more, only=("MHA-SCALE",))
    assert [result.clause.id for result in report.failures()] == red
    assert ("MultiHeadAttention" in report.unusable) != bool(red)
    assert not report.conforms


@pytest.mark.full
def test_settings_made_of_any_keywords_have_the_names_of_their_defaults(judged):
    """Catches code around `config(**kw)`, a namespace over a dictionary, of which nothing can be built."""
    settings = """
from types import SimpleNamespace

DEFAULTS = dict(n_embd=64, n_head=4)

def config(**kw):
    return SimpleNamespace(**{**DEFAULTS, **kw})
"""
    head = "def __init__(self, n_embd, n_head):"
    code = RIGHT.replace(head, "def __init__(self, cfg):\n        n_embd, n_head = cfg.n_embd, cfg.n_head")
    assert head in RIGHT
    assert judged(code + settings).conforms


def test_a_mistake_in_it_is_no_pass(judged):
    """Catches wrong code that is left out since no variant gives its numbers, and the rest that then conforms."""
    report = judged(ATTENTION.replace("WIDTH", "C").replace("CHANGED", ""), only=("MHA",))
    red = {result.clause.component for result in report.results if report.breaks(result) and result.verdict.red}
    assert "MultiHeadAttention" in {*red, *report.unusable}
    assert not report.conforms


def test_what_nobody_can_say_is_wrong_is_not_judged(judged):
    """Catches code that is called wrong though it may be something else, and a pass for what was not judged."""
    report = judged(ATTENTION.replace("WIDTH", "q.shape[-1]").replace("CHANGED", " ** 3 + np.sin(x)"), only=("MHA",))
    assert "MultiHeadAttention" in report.unusable
    assert not report.conforms
    assert not any(result.verdict.red and report.breaks(result) for result in report.results)


def test_what_is_required_and_not_there_is_no_pass(judged):
    """Catches a verdict on a part that reads as one on the whole."""
    report = judged(RIGHT, only=("MHA-ORACLE", "BLOCK-ORACLE"))
    assert "TransformerBlock" in report.unusable
    assert not report.conforms
    assert {r.clause.id: r.verdict for r in report.results}["MHA-ORACLE"] is Verdict.PASS


def test_a_file_wins_and_half_of_one_is_completed(judged):
    """Catches a declared class that another one replaces, and a file of one line that is of no use."""
    table = '[components.MultiHeadAttention]\npath = "gpt:Other"\n'
    other = RIGHT.replace("CausalSelfAttention", "Other").replace("n_head)", "how_many_of_them)", 1)
    report = judged(RIGHT + other.replace("n_head = n_head", "n_head = how_many_of_them"), table=table)
    assert report.conforms
    assert dict(report.found) == {"MultiHeadAttention": "gpt:Other"}


@pytest.mark.parametrize(
    "options", [{"discover": False}, {"forbid_kit_imports": True}], ids=["not-asked", "submission"]
)
def test_a_grade_takes_nothing_that_is_not_declared(judged, options):
    """Catches a submission that is judged as what it was taken for."""
    with pytest.raises(LoadFailure, match="exports none"):
        judged(RIGHT, **options)


UNCUT = RIGHT.replace("n_embd, n_head):", "n_embd, n_head, attn_mask=None):").replace(
    "scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)",
    "scores = scores if self.attn_mask is None else scores + self.attn_mask",
).replace("self.n_head = n_head", "self.n_head, self.attn_mask = n_head, attn_mask")  # fmt: skip


def test_attention_whose_mask_fits_one_length_is_judged_without_it(judged):
    """Catches the text side of an image-text model, right as it is, that is red since a part of it is not causal."""
    assert UNCUT.count("attn_mask") > 3
    report = judged(UNCUT, only=("MHA-CAUSAL", "MHA-ORACLE"))
    assert report.conforms
    assert dict(report.found) == {"MultiHeadAttention": "gpt:CausalSelfAttention"}


BUCKETS = RIGHT.replace("n_embd, n_head):", "n_embd, n_head, bidirectional=True):").replace(
    "forward(self, x):", "forward(self, x, mask=None):"
).replace(
    "scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)",
    "scores = scores if mask is None else np.where(mask, scores, -np.inf)",
)  # fmt: skip


def test_a_flag_about_distances_is_not_taken_for_causality(judged):
    """Catches T5's attention, right as it is, that is red since `bidirectional` hides nothing: its mask does."""
    assert BUCKETS.count("mask") == 3
    report = judged(BUCKETS, only=("MHA-CAUSAL", "MHA-ORACLE"))
    assert report.conforms
    assert dict(report.found) == {"MultiHeadAttention": "gpt:CausalSelfAttention"}


VISION = """
import torch
from torch import nn

class PatchEmbedding(nn.Module):
    def __init__(self, img_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.randn(1, (img_size // patch_size) ** 2 + 1, embed_dim) * 0.02)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed

class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, num_heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_ratio * dim), nn.GELU(), nn.Linear(mlp_ratio * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))

class ViT(nn.Module):
    def __init__(self, img_size, patch_size, in_channels, num_classes, embed_dim, depth, num_heads, mlp_ratio=4):
        super().__init__()
        self.patch_embed = PatchEmbedding(img_size, patch_size, in_channels, embed_dim)
        self.blocks = nn.Sequential(*[Block(embed_dim, num_heads, mlp_ratio) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(embed_dim), nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.patch_embed(x)))[:, 0])
"""


def test_patches_with_a_class_token_are_judged_in_the_whole(judged):
    """Catches a right image model that is red since its embedding gives a row more than there are patches."""
    report = judged(VISION, only=("PATCH-SHAPE", "VIT-ORACLE"), profile="vit")
    assert report.conforms
    assert [result.clause.id for result in report.results if result.verdict is Verdict.PASS] == ["VIT-ORACLE"]
    assert any("judged in the whole" in note for note in report.notes)


FUNCTION = """
import numpy as np

def attention(q, k, v, mask):
    scores = q @ FIRST.T / np.sqrt(q.shape[-1]) + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ SECOND
"""


@pytest.mark.parametrize(("first", "second", "conforms"), [("k", "v", True), ("v", "k", False)], ids=["own", "other"])
def test_attention_with_keys_for_values_is_judged(judged, first, second, conforms):
    """Catches a function that refuses values of another width, and is then said not to be there."""
    source = FUNCTION.replace("FIRST", first).replace("SECOND", second)
    report = judged(source, only=("SDPA-OUT-SHAPE", "SDPA-2D"))
    assert dict(report.found) == {"ScaledDotProductAttention": "gpt:attention"}
    assert report.conforms == conforms
    assert any(result.verdict.red and report.breaks(result) for result in report.results) != conforms


def test_attention_that_gives_its_queries_back_is_judged(judged):
    """Catches a search through orders of arguments that multiplies what cannot be multiplied: the kit itself failed."""
    report = judged("def scaled_dot_product_attention(q, k, v, mask=None):\n    return q\n", ("DEV-WRITTEN",))
    assert [result.clause.id for result in report.results] == ["DEV-WRITTEN"]
    assert not report.conforms


ENCODER = """
from torch import nn

class EncoderBlock(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, h, dropout=dropout, batch_first=True)
        self.hidden, self.out = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, src_mask):
        hidden = None if src_mask is None else ~src_mask.bool().reshape(len(x), -1, x.shape[1])[:, 0]
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=hidden, need_weights=False)[0])
        return self.norm2(x + self.out(self.hidden(x).relu()))
"""


def test_choices_of_code_with_well_known_other_names_are_found(judged):
    """Catches post-norm and ReLU that are red as undeclared in code whose author has never seen the contract."""
    report = judged(ENCODER, ("ENC-RESIDUALS",), profile="seq2seq")
    assert report.found["EncoderLayer"] == "gpt:EncoderBlock"
    assert not [result for result in report.results if result.verdict.red]


@pytest.mark.parametrize(
    ("name", "kind", "idle"),
    [
        ("Reader", "class", True),
        ("RMSNorm", "class", False),
        ("gpt2", "function", True),
        ("softmax", "function", False),
    ],
)
def test_what_nothing_was_taken_for_may_be_what_is_lacking(name, kind, idle):
    """Catches a model that nobody recognized and that counts as not there, and a helper that keeps code from a pass."""
    attention = Item("gpt:Attention", "class", [], [], None)
    other = Item(f"gpt:{name}", kind, None, [{"name": "x"}], None)
    found = Proposal("MultiHeadAttention", {"path": "gpt:Attention"})
    assert _idle([attention, other], [found]) == ([f"gpt:{name}"] if idle else [])


@pytest.mark.parametrize(
    ("profile", "idle", "all_of_it"), [("core", (), True), ("core", ("gpt:Reader",), False), ("lm", (), False)]
)
def test_code_of_which_all_is_judged_is_no_part_of_something_larger(profile, idle, all_of_it):
    """Catches right attention alone that ends with 3 since there is no model, and tools that nobody recognized."""
    found = Completed(Draft("gpt.py", "torch", (), (), {}, (), idle=idle), Config())
    assert found.accounts_for_all(RunRequest("gpt.py", profile=profile)) is all_of_it


def test_what_a_call_shows_to_be_wrong_is_said_once_and_where():
    """Catches a mistake that one call shows and that the report never tells, or tells again for each whole."""
    attention, block = (
        Proposal(name, {"path": f"gpt:{name}"}, mistakes=[Discrepancy("", told) for told in sentences])
        for name, sentences in {"MultiHeadAttention": ["A"], "TransformerBlock": ["A", "B"]}.items()
    )
    found = Completed(
        Draft("gpt.py", "torch", [attention, block], (), {}, ()),
        Config(components={name: ComponentConfig(name) for name in ("MultiHeadAttention", "TransformerBlock")}),
    )
    notes = found.notes(RunRequest("gpt.py"))
    assert [note for note in notes if note.startswith("found: in ")] == [
        "found: in MultiHeadAttention, A", "found: in TransformerBlock, B",
    ]  # fmt: skip
    red = Result(clause("MHA-SPLIT-POSITIONS"), Verdict.FAIL)
    guess = {name: DifferingPart("heads", "start with the heads") for name in ("MultiHeadAttention", "FeedForward")}
    report = found.located(Report("gpt.py", "gpt.py", "torch", profile="core", results=[red], parts=guess))
    assert {name: part.sentence for name, part in report.parts.items()} == {
        "MultiHeadAttention": "A", "FeedForward": "start with the heads",
    }  # fmt: skip


FUNCTIONAL = """
import numpy as np
from typing import NamedTuple

class Cfg(NamedTuple):
    d: int = 48
    heads: int = 4

def init_params(key, cfg):
    rng = np.random.default_rng(key)
    return {"blocks": [{"attn": {name: rng.normal(size=(cfg.d, cfg.d)) * 0.2 for name in "qkvo"}}]}

def mha(p, x, cfg):
    B, T, C = x.shape
    q, k, v = ((x @ p[name]).reshape(B, T, cfg.heads, -1).swapaxes(1, 2) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(SCALE)
    scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return ((e / e.sum(-1, keepdims=True)) @ v).swapaxes(1, 2).reshape(B, T, C) @ p["o"]
"""


@pytest.mark.full
@pytest.mark.parametrize(("scale", "right"), [("q.shape[-1]", True), ("C", False)])
def test_functions_of_nested_weights_and_settings_are_found(judged, scale, right):
    """Catches pure functions, `mha(params, x, cfg)`, that are not judged: settings are no weights."""
    report = judged(FUNCTIONAL.replace("SCALE", scale))
    assert report.found["MultiHeadAttention"] == "gpt:mha"
    assert report.conforms is right


ALWAYS_ON = """
import numpy as np

def attention(q, k, v, causal=True):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[-2:], bool), k=1), -np.inf, scores)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v
"""


@pytest.mark.full
def test_attention_that_is_causal_by_default_is_called_without_that(judged):
    """Catches hidden keys, where the contract has no mask, as a mistake of code that may leave them visible."""
    report = judged(ALWAYS_ON, only=("MASK-NONE", "SDPA-FORMULA"))
    assert report.conforms
    assert report.found["ScaledDotProductAttention"] == "gpt:attention"


@pytest.mark.parametrize(("about", "kept"), [("TinyTransformerLM", 0), ("MultiHeadAttention", 1)])
def test_what_is_uncertain_is_not_red_in_clauses_about_all(about, kept):
    """Catches red for a model that may be something else, and what is said of another part that is set aside too."""
    red = Result(clause("GRAD-FINITE"), Verdict.ERROR, finding=stated(f"{about} raised"))
    left = {result.clause.id for result in set_aside([red], {"TinyTransformerLM"})}
    assert left == (set() if kept else {"GRAD-FINITE"})


@pytest.mark.parametrize(
    ("name", "true", "found"),
    [("attention_mask", "hide", "attention_mask"), ("attention_mask", "attend", ""), ("padding_mask", "hide", "")],
)
def test_a_mask_that_hides_and_is_called_as_what_shows_is_left_open(name, true, found):
    """Catches a BERT whose attention_mask is used the wrong way round, and that passes as one in which 1 hides."""
    call = [{"name": "input_ids"}, {"name": name}]
    assert hidden_by_what_shows({"masks": {"mask": {"true": true}}}, call) == found


HEADS = """
import numpy as np

class SelfAttention:
    def __init__(self, n_embd, size, seed):
        rng = np.random.default_rng(seed)
        self.query, self.key, self.value = (rng.normal(size=(size, n_embd)) * 0.2 for _ in range(3))

    def forward(self, x, hidden):
        q, k, v = (x @ w.T for w in (self.query, self.key, self.value))
        scores = np.where(hidden, -np.inf, q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH))
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True)) @ v

class CausalSelfAttention:
    def __init__(self, n_embd, n_head):
        self.heads = [USED(n_embd, n_embd // n_head, seed) for seed in range(n_head)]
        self.proj = np.random.default_rng(9).normal(size=(n_embd, n_embd)) * 0.2

    def forward(self, x):
        hidden = np.triu(np.ones((x.shape[1],) * 2, bool), k=1)
        return np.concatenate([head.forward(x, hidden) for head in self.heads], axis=-1) @ self.proj.T
"""
ALONE = "\n\nclass Head(SelfAttention):\n    pass\n\n\nclass CausalSelfAttention"


@pytest.mark.parametrize(
    ("used", "width", "conforms"),
    [("SelfAttention", "q.shape[-1]", True), ("SelfAttention", "x.shape[-1]", False), ("Head", "q.shape[-1]", False)],
    ids=["inside", "wrong-inside", "beside"],
)
def test_a_part_of_the_contract_s_name_is_judged_where_it_is_called(judged, used, width, conforms):
    """Catches right code that has no verdict since a part of it has other arguments, and a part that nothing calls."""
    source = HEADS.replace("USED", used).replace("WIDTH", width)
    source = source.replace("\n\nclass CausalSelfAttention", ALONE) if used == "Head" else source
    report = judged(source, only=("MHA-SCALE", "MHA-ORACLE", "SA-CAUSAL"))
    assert report.conforms is conforms
    assert ("SelfAttention" in report.unusable) is not conforms
    assert any("judged inside MultiHeadAttention" in note for note in report.notes) is conforms


STACK = """
from torch import nn

class Encoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.0):
        super().__init__()
        options = {"activation": "gelu", "batch_first": True, "norm_first": True}
        layers = (nn.TransformerEncoderLayer(d_model, num_heads, d_ff, dropout, **options) for _ in range(num_layers))
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=None if mask is None else ~mask[:, 0, 0])
        return self.norm(x)
"""


@pytest.mark.parametrize(("mask", "red"), [("~mask", []), ("mask", ["ENC-STACK-PAD"])], ids=["right", "turned"])
def test_a_stack_of_layers_of_the_framework_is_searched_itself(judged, mask, red):
    """Catches torch's layers, whose biases are declared nowhere, as a mistake, and the mistake beside them as right."""
    report = judged(STACK.replace("~mask", mask), ("ENC-STACK-COUNT", "ENC-STACK-PAD"), profile="seq2seq")
    assert [result.clause.id for result in report.results if result.verdict.red] == red
    assert report.conforms is (not red)
