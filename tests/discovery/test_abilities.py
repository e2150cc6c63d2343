"""Where nobody names a profile, what the code has decides what is judged."""

from pathlib import Path

import pytest

from conformkit.conformance.discovery.abilities import profile_of
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

RIGHT = (Path(__file__).parents[1] / "right_paths/like_nanogpt/__init__.py").read_text()
BATCHES = """

def get_batch(data, batch_size, block_size):
    starts = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in starts])
    return x, torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
"""
ONCE = "F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)"
TWICE = "F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=-1)"


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges a file of which nothing is declared, by whatever profiles fit."""

    def run_it(source, **options):
        (tmp_path / "gpt.py").write_text(source.replace("TinyTransformerLM", "GPT"))
        only = ("LM-LOGITS-SHAPE", "PATH-LOSS-SHIFT", "DATA-SHIFT")
        return run(RunRequest(str(tmp_path / "gpt.py"), only=only, discover=True, **{"widens": True, **options}))

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


def test_a_profile_that_is_named_is_the_only_one(judged):
    """Catches `--profile core` that judges more than was asked for."""
    report = judged(RIGHT + BATCHES, widens=False)
    assert report.profile == "core"
    assert {result.clause.id for result in report.results} == {"LM-LOGITS-SHAPE"}


def _class(name, *call):
    taken = [{"name": argument, "required": True, "kind": "positional", "default": None} for argument in call]
    return Item(f"own:{name}", "class", [], taken, None)


@pytest.mark.parametrize(
    ("classes", "profile"),
    [
        ([_class("GPT", "idx"), _class("Block", "x")], "core"),
        ([_class("Transformer", "src", "tgt"), _class("Encoder", "x")], "seq2seq"),
        ([_class("PatchEmbedding", "x"), _class("ViT", "img")], "vit"),
        ([_class("BertModel", "input_ids"), _class("BertLayer", "x")], "encoder"),
        ([_class("Encoder", "x"), _class("EncoderLayer", "x")], "core"),
        ([_class("GPT", "idx"), _class("BertLayer", "x")], "core"),
        ([_class("PatchMerger", "x"), _class("GPT", "idx")], "core"),
    ],
    ids=["decoder", "both", "images", "bert", "blocks", "decoder-beside-bert", "decoder-beside-patches"],
)
def test_the_largest_thing_decides(classes, profile):
    """Catches an encoder-decoder, BERT or ViT that core judges, which has no clauses about it."""
    assert profile_of(classes) == profile
