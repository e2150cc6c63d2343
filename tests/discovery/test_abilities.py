"""Where nobody names a profile, what the code has decides what is judged."""

from pathlib import Path

import pytest

from conformkit.conformance.discovery.abilities import profile_of
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

RIGHT = (Path(__file__).parents[1] / "right_paths/like_nanogpt/__init__.py").read_text()
TRAINING = """

class TextDataset:
    def __getitem__(self, place):
        return self.ids[place : place + 8], self.ids[place : place + 8]
"""
BATCHES = """

def get_batch(data, batch_size, block_size):
    starts = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in starts])
    return x, torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
"""
CHARACTERS = """

class CharTokenizer:
    def __init__(self, text):
        self.chars = sorted(set(text))

    def encode(self, text):
        return [self.chars.index(c) for c in text]

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)
"""
ONCE = "F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)"
TWICE = "F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-1)"


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges a file of which nothing is declared, by whatever profiles fit."""

    def run_it(source, **options):
        (tmp_path / "gpt.py").write_text(source.replace("TinyTransformerLM", "GPT"))
        usual = {"only": ("LM-LOGITS-SHAPE", "PATH-LOSS-SHIFT", "DATA-SHIFT"), "widens": True}
        return run(RunRequest(str(tmp_path / "gpt.py"), discover=True, **{**usual, **options}))

    return run_it


@pytest.mark.parametrize(
    ("source", "red"),
    [
        (RIGHT + BATCHES, []),
        (RIGHT.replace(ONCE, TWICE) + BATCHES, ["PATH-LOSS-SHIFT"]),
        (RIGHT.replace(ONCE, TWICE), []),
        (RIGHT + BATCHES.replace("[i + 1 : i + 1 +", "[i : i +"), ["DATA-SHIFT"]),
    ],
    ids=["once", "twice", "by-the-model-alone", "never"],
)
def test_targets_are_shifted_once_by_whoever_does_it(judged, source, red):
    """Catches a model with a loss of its own, and batches, that conform to core, which looks at neither."""
    report = judged(source)
    assert RIGHT.count(ONCE) == 1
    assert [result.clause.id for result in report.failures()] == red
    assert report.conforms != bool(red)
    assert report.profile == ("core,lm,paths" if "get_batch" in source else "core,paths")
    assert report.found["TinyTransformerLM"] == "gpt:GPT"


TABLE = """
[variant]
positions = "learned"
qkv_bias = true
output_bias = true
activation = "gelu"
head_bias = false
tied = true

[components.TinyTransformerLM]
path = "gpt:GPT"
"""


def test_a_tokenizer_that_does_not_tell_how_many_ids_it_has_is_not_judged(judged):
    """Catches red for right code that nobody declared, since its objects have no vocab_size."""
    report = judged(RIGHT + CHARACTERS, only=("LM-LOGITS-SHAPE", "TOK-RANGE"))
    assert report.conforms
    assert [result.clause.id for result in report.results] == ["LM-LOGITS-SHAPE"]


ONE_TEXT = """
import numpy as np

def normed(x, gain, bias):
    x = x - x.mean(-1, keepdims=True)
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) + bias

def attend(x, w_q, w_k, w_v, w_o, n_head, past):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    if past is not None:
        k, v = np.concatenate([past[0], k]), np.concatenate([past[1], v])
    hidden = np.tri(len(q), len(k), len(k) - len(q)) == 0
    heads = []
    for a, b, c in zip(*(np.split(rows, n_head, axis=-1) for rows in (q, k, v))):
        scores = np.where(hidden, -1e10, a @ b.T / np.sqrt(a.shape[-1]))
        e = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(e / e.sum(-1, keepdims=True) @ c)
    return np.hstack(heads) @ w_o, (k, v)

class GPT:
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_ctx):
        rng = np.random.default_rng(0)
        draw = lambda *shape: rng.normal(size=shape) * 0.1
        self.n_head, self.wte, self.wpe = n_head, draw(vocab_size, n_embd), draw(n_ctx, n_embd)
        self.blocks = [
            {"gain": np.ones(n_embd), "bias": np.zeros(n_embd), **{name: draw(n_embd, n_embd) for name in
             ("w_q", "w_k", "w_v", "w_o")}, "gain2": np.ones(n_embd), "bias2": np.zeros(n_embd),
             "up": draw(n_embd, 4 * n_embd), "b_up": np.zeros(4 * n_embd), "down": draw(4 * n_embd, n_embd),
             "b_down": np.zeros(n_embd)}
            for _ in range(n_layer)
        ]
        self.gain, self.bias = np.ones(n_embd), np.zeros(n_embd)

    def forward(self, inputs, past=None):
        start = 0 if past is None else len(past[0][0])
        x, kept = self.wte[inputs] + self.wpe[start : start + len(inputs)], []
        for number, b in enumerate(self.blocks):
            y, both = attend(normed(x, b["gain"], b["bias"]), b["w_q"], b["w_k"], b["w_v"], b["w_o"], self.n_head,
                             None if past is None else past[number])
            x = x + y
            x = x + np.maximum(normed(x, b["gain2"], b["bias2"]) @ b["up"] + b["b_up"], 0) @ b["down"] + b["b_down"]
            kept.append(both)
        return normed(x, self.gain, self.bias) @ self.wte.T, kept
"""


@pytest.mark.full
def test_the_cache_of_one_text_is_told_and_not_judged(judged):
    """Catches red for right code without a batch, whose cache was put into batches."""
    report = judged(ONE_TEXT, only=("LM-LOGITS-SHAPE", "PATH-CACHE-ONE", "GEN-EOS-STOP"))
    assert report.conforms
    assert "PATH-CACHE-ONE" not in {result.clause.id for result in report.results}
    assert any("the cache: it is not judged" in note for note in report.notes)


def test_a_file_that_says_where_the_model_is_hides_nothing(judged, tmp_path):
    """Catches a mistake that is red no longer once its draft is written down, and what nobody looked at, unsaid."""
    (tmp_path / "conform.toml").write_text(TABLE)
    report = judged(RIGHT.replace(ONCE, TWICE) + BATCHES + TRAINING)
    assert [result.clause.id for result in report.failures()] == ["PATH-LOSS-SHIFT"]
    assert "not judged, for nothing shows what they are: TextDataset" in report.notes
    assert report.profile == "core,lm,paths"


def test_the_command_that_repeats_a_failure_finds_it_again(judged):
    """Catches `--profile core,lm,paths --only PATH-LOSS-SHIFT`, without the batches that show what is wrong."""
    report = judged(RIGHT.replace(ONCE, TWICE) + BATCHES, profile="core,lm,paths", only=("PATH-LOSS-SHIFT",))
    assert [result.clause.id for result in report.failures()] == ["PATH-LOSS-SHIFT"]


def test_a_profile_that_is_named_is_the_only_one(judged):
    """Catches `--profile core` that judges more than was asked for."""
    report = judged(RIGHT + BATCHES, widens=False)
    assert report.profile == "core"
    assert {result.clause.id for result in report.results} == {"LM-LOGITS-SHAPE"}


def _taken(names):
    return [{"name": argument, "required": True, "kind": "positional", "default": None} for argument in names]


def _class(name, *call, made=()):
    return Item(f"own:{name}", "class", _taken(made), _taken(call), None)


@pytest.mark.parametrize(
    ("classes", "profile"),
    [
        ([_class("GPT", "idx"), _class("Block", "x")], "core"),
        ([_class("Transformer", "src", "tgt"), _class("Encoder", "x")], "seq2seq"),
        ([_class("Model", "src_ids", "tgt_ids", made=["cfg"]), _class("Encoder", "x")], "seq2seq"),
        ([_class("Loss", "source", "target", made=["smoothing"]), _class("GPT", "idx")], "core"),
        ([_class("PatchEmbedding", "x"), _class("ViT", "img")], "vit"),
        ([_class("BertModel", "input_ids"), _class("BertLayer", "x")], "encoder"),
        ([_class("Encoder", "x"), _class("EncoderLayer", "x")], "core"),
        ([_class("GPT", "idx"), _class("BertLayer", "x")], "core"),
        ([_class("PatchMerger", "x"), _class("GPT", "idx")], "core"),
        (
            [
                Item("own:config", "mapping", _taken(["image_size"]), None, None),
                _class("PatchEmbeddings", "x", made=["config"]),
                _class("ViTForClassification", "x", made=["config"]),
            ],
            "vit",
        ),
    ],
    ids=[
        "decoder",
        "both",
        "any-name",
        "loss",
        "images",
        "bert",
        "blocks",
        "decoder-beside-bert",
        "decoder-beside-patches",
        "images-of-a-dictionary",
    ],
)
def test_the_largest_thing_decides(classes, profile):
    """Catches an encoder-decoder, BERT or ViT that core judges, which has no clauses about it."""
    assert profile_of(classes) == profile
