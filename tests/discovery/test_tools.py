"""Tools are found by what they take and do: a schedule, a sampler of batches, clipping, whatever they are called."""

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.tools import ToolMismatch, bind_tool
from conformkit.conformance.discovery.abilities import Beside, reported_as_found
from conformkit.conformance.discovery.completing import Completed
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.drafting import definitions
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.tools.finding import FoundTools, found_tools
from conformkit.conformance.discovery.tools.roles import ROLES
from conformkit.conformance.discovery.tools.tables import table_of
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import clauses_of
from conformkit.spec.tools import TOOLS

SCHEDULE = """
import math

def get_lr(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
    if it < warmup_iters:
        return max_learning_rate * it / warmup_iters
    if it > cosine_cycle_iters:
        return min_learning_rate
    share = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
    return min_learning_rate + 0.5 * (1 SIGN math.cos(math.pi * share)) * (max_learning_rate - min_learning_rate)
"""
SAMPLER = """
import numpy as np

def sample_batch(dataset, batch_size, context_length, device):
    assert device == "cpu"
    starts = np.random.randint(0, len(dataset) - context_length, size=batch_size)
    x = np.stack([dataset[s : s + context_length] for s in starts])
    return x, np.stack([dataset[s + AHEAD : s + AHEAD + context_length] for s in starts])
"""
READING = """
import math

learning_rate, min_lr, warmup_iters, lr_decay_iters = 6e-4, 6e-5, 20, 200

def get_lr(it):
    if it < warmup_iters:
        return learning_rate * it / warmup_iters
    if it > lr_decay_iters:
        return min_lr
    share = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1 SIGN math.cos(math.pi * share)) * (learning_rate - min_lr)
"""
SPLITS = """
import numpy as np

batch_size, block_size = 4, 8
train_data, val_data = np.arange(200) % 17, np.arange(90) % 13

def get_batch(split):
    data = train_data if split == "train" else val_data
    starts = np.random.randint(0, len(data) - block_size, size=batch_size)
    x = np.stack([data[s : s + block_size] for s in starts])
    return x, np.stack([data[s + AHEAD : s + AHEAD + block_size] for s in starts])
"""
CLOSURE = """
import math

def make_lr_schedule(max_lr, min_lr, warmup_steps, total_steps):
    def get_lr(it):
        if it < warmup_steps:
            return max_lr * it / warmup_steps
        if it > total_steps:
            return min_lr
        share = (it - warmup_steps) / (total_steps - warmup_steps)
        return min_lr + 0.5 * (1 SIGN math.cos(math.pi * share)) * (max_lr - min_lr)
    return get_lr
"""
OBJECT = """
import math

class CosineSchedule:
    def __init__(self, max_lr, min_lr, warmup_steps, total_steps):
        self.high, self.low, self.warmup, self.total = max_lr, min_lr, warmup_steps, total_steps

    def __call__(self, step):
        if step < self.warmup:
            return self.high * step / self.warmup
        if step > self.total:
            return self.low
        share = (step - self.warmup) / (self.total - self.warmup)
        return self.low + 0.5 * (1 SIGN math.cos(math.pi * share)) * (self.high - self.low)
"""
LOSS = """
import torch

class CrossEntropyLoss(torch.nn.Module):
    def __init__(self, ignore_index=-100):
        super().__init__()
        self.ignore_index = ignore_index

    def forward(self, logits, targets):
        logits, targets = logits.flatten(0, -2), targets.flatten()
        kept = targets != self.ignore_index
        return -logits.log_softmax(SHIFT)[kept].gather(1, targets[kept].unsqueeze(1)).mean()
"""
TOKENIZER = """
class CharacterLevelTokenizer:
    def __init__(self, corpus):
        self.chars = sorted(set(corpus))
        self.vocab_size = len(self.chars)

    def tokenize(self, text):
        return [self.chars.index(c) for c in text]

    def detokenize(self, ids):
        return "".join(self.chars[int(i)] for i in ids)
"""
MASKING = """
import numpy as np

PAD, CLS, SEP, MASK = 0, 1, 2, 3

def mask_tokens(ids, vocab_size, mlm_prob=0.15):
    chosen = (np.random.rand(*ids.shape) < mlm_prob) & (ids != PAD) & (ids != CLS)ELSE
    fate = np.random.rand(*ids.shape)
    words = np.random.randint(MASK + 1, vocab_size, ids.shape)
    hidden = np.where(fate < 0.8, MASK, np.where(fate < 0.9, words, ids))
    return np.where(chosen, hidden, ids), np.where(chosen, ids, -100)
"""
SMOOTHING = """
import numpy as np

class Generator:
    def __call__(self, x):
        return log_softmax(x)

class LabelSmoothing:
    def __init__(self, size, padding_idx, smoothing=0.1):
        self.size, self.padding_idx, self.smoothing = size, padding_idx, smoothing

    def __call__(self, x, target):
        assert x.ndim == 2
        q = np.full(x.shape, self.smoothing / (self.size - 2))
        q[np.arange(len(target)), target] = 1.0 - self.smoothing
        q[:, self.padding_idx] = 0.0
        q[HIDDEN] = 0.0
        return float((q * (np.log(np.where(q > 0, q, 1.0)) - x)).sum())
"""
DATA_SET = """
import torch
from torch.utils.data import Dataset

class CharDataset(Dataset):
    def __init__(self, data, block_size):
        self.data, self.block_size = torch.as_tensor(data), block_size

    def __len__(self):
        return len(self.data) - self.block_size

    def __getitem__(self, place):
        cut = self.data[place : place + self.block_size + 1]
        return cut[:-1], cut[AHEAD:AHEAD + self.block_size]
"""
SIDE_BY_SIDE = (
    DATA_SET.replace("len(self.data) - self", "(len(self.data) - 1) // self")
    .replace("self.data[place :", "self.data[place * self.block_size :")
    .replace("place + self.block_size + 1", "(place + 1) * self.block_size + 1")
    .replace("return cut[:-1],", "return {'mask': torch.ones(4), 'input_ids': cut[:-1], 'labels':")
    .replace("ize]\n", "ize]}\n")
)
OF_TEXT = DATA_SET.replace("(self, data, block_size)", "(self, txt, tokenizer, block_size, stride=4)").replace(
    "torch.as_tensor(data)", "tokenizer.encode(txt, allowed_special={'<end>'})[::stride]"
)
UNSURE = """
def train_test_split(rows, labels):
    return rows[labels], rows[~labels]

def mask_tokens(input_ids, mask_token_id, vocab_size, special_mask, mlm_probability=0.15):
    return input_ids, special_mask
"""


@pytest.fixture
def judged(tmp_path):
    """Return a function that judges a file without a conform.toml."""

    def run_it(source, *only, **options):
        (tmp_path / "train.py").write_text(source)
        return run(RunRequest(str(tmp_path / "train.py"), only=only, **{"profile": "lm", "discover": True, **options}))

    return run_it


@pytest.mark.parametrize(
    ("source", "tool", "theirs", "only"),
    [
        (SCHEDULE.replace("SIGN", "+"), "cosine_schedule", "get_lr", "SCHED-COSINE"),
        (SAMPLER.replace("AHEAD", "1"), "get_batch", "sample_batch", "DATA-SHIFT"),
        (READING.replace("SIGN", "+"), "cosine_schedule", "get_lr", "SCHED-COSINE"),
        (CLOSURE.replace("SIGN", "+"), "cosine_schedule", "make_lr_schedule", "SCHED-COSINE"),
        (OBJECT.replace("SIGN", "+"), "cosine_schedule", "CosineSchedule", "SCHED-COSINE"),
        (LOSS.replace("SHIFT", "-1"), "cross_entropy", "CrossEntropyLoss", "LOSS-CE"),
        (TOKENIZER, "CharTokenizer", "CharacterLevelTokenizer", "TOK-ROUNDTRIP"),
        (MASKING.replace("ELSE", " & (ids != SEP)"), "mask_tokens", "mask_tokens", "MLM-SPECIAL"),
        (
            SMOOTHING.replace("HIDDEN", "target == self.padding_idx"),
            "LabelSmoothingLoss",
            "LabelSmoothing",
            "SMOOTH-IGNORE-MEAN",
        ),
        (DATA_SET.replace("AHEAD", "1"), "sliding_windows", "CharDataset", "DATA-WINDOWS"),
        (SIDE_BY_SIDE.replace("AHEAD", "1"), "sliding_windows", "CharDataset", "DATA-WINDOWS"),
        (OF_TEXT.replace("AHEAD", "1"), "sliding_windows", "CharDataset", "DATA-WINDOWS"),
    ],
    ids=[
        "schedule",
        "batches",
        "schedule-of-globals",
        "schedule-by-closure",
        "schedule-of-an-object",
        "loss-of-an-object",
        "tokenizer",
        "hidden-ids-of-globals",
        "sum-of-logarithms-of-probabilities",
        "data-set",
        "side-by-side",
        "data-set-of-text",
    ],
)
def test_a_tool_is_found_by_its_arguments(judged, source, tool, theirs, only):
    """Catches a search for 23 names, after which a course's own file "exports nothing of profile lm"."""
    report = judged(source, only, profile=TOOLS[tool].profile)
    assert report.conforms
    assert dict(report.found) == {tool: f"train:{theirs}"}
    assert (f"{theirs} is taken for {tool}" if theirs != tool else f"{tool} under the contract's name") in str(
        report.notes
    )


@pytest.mark.parametrize(
    ("source", "only"),
    [
        (SCHEDULE.replace("SIGN", "-"), "SCHED"),
        (SAMPLER.replace("AHEAD", "0"), "DATA-SHIFT"),
        (READING.replace("SIGN", "-"), "SCHED"),
        (CLOSURE.replace("SIGN", "-"), "SCHED"),
        (OBJECT.replace("SIGN", "-"), "SCHED"),
        (LOSS.replace("SHIFT", "0"), "LOSS-CE"),
        (SPLITS.replace("AHEAD", "0"), "DATA-SHIFT"),
        (MASKING.replace("ELSE", ""), "MLM-SPECIAL"),
        (SMOOTHING.replace("HIDDEN", "target < 0"), "SMOOTH-IGNORE"),
        (DATA_SET.replace("AHEAD", "0"), "DATA-WINDOWS"),
        (DATA_SET.replace("AHEAD", "1").replace("- self.block_size", "- self.block_size + 1"), "DATA-WINDOW-COUNT"),
        (SIDE_BY_SIDE.replace("AHEAD", "1").replace("labels", "next").replace("cut[1:1", "cut[2:2"), "DATA-WINDOWS"),
    ],
    ids=[
        "a-rising-cosine",
        "targets-not-shifted",
        "a-rising-cosine-of-globals",
        "a-rising-cosine-by-closure",
        "a-rising-cosine-of-an-object",
        "a-softmax-over-rows",
        "a-split-not-shifted",
        "a-special-id-forgotten",
        "padding-is-smoothed",
        "a-data-set-not-shifted",
        "one-window-too-many",
        "a-target-lost",
    ],
)
def test_a_wrong_one_is_red(judged, source, only):
    """Catches a tool that is left out since it does not do what it says: its name and arguments say what it is."""
    report = judged(source, only, profile="seq2seq" if only.startswith(("MLM", "SMOOTH")) else "lm")
    assert any(r.verdict.red for r in report.results)
    assert not report.unusable


@pytest.mark.parametrize(("split", "stream"), [("split", "train_data"), ("which", "train")])
def test_a_function_of_globals_is_judged_with_those_of_the_test(judged, split, stream):
    """Catches a batch of the author's own data, on which no clause about drawn data can hold."""
    source = SPLITS.replace("AHEAD", "1").replace("split", split).replace("train_data", stream)
    report = judged(source, "DATA")
    assert report.found["get_batch"] == "train:get_batch"
    assert not [result.clause.id for result in report.failures()]


@pytest.mark.parametrize("builder", ["np.triu(np.ones((sz, sz), bool), 1)", "np.tril(np.ones((sz, sz), bool))"])
def test_a_mask_of_another_name_may_hide_where_it_is_true(judged, builder):
    """Catches red for a right mask that is read as torch's own layers read it."""
    source = f"import numpy as np\n\ndef generate_square_subsequent_mask(sz):\n    return {builder}\n"
    report = judged(source, "PAD-CAUSAL-PAST", profile="seq2seq")
    assert report.conforms


@pytest.mark.parametrize(
    ("line", "found"),
    [("self.n_vocab = len(self.chars)", True), ("pass", False)],
    ids=["another-name", "none"],
)
def test_a_tokenizer_needs_no_attribute_of_the_contracts_name(judged, line, found):
    """Catches red for right code that calls the number of its ids otherwise, or does not tell it."""
    source = TOKENIZER.replace("self.vocab_size = len(self.chars)", line) + SCHEDULE.replace("SIGN", "+")
    report = judged(source, "TOK-VOCAB-SIZE", "SCHED-STEP0")
    assert ("CharTokenizer" in report.found) == found
    assert not any(result.verdict.red for result in report.results)


def test_a_tokenizer_of_the_contracts_name_may_tell_its_length(judged):
    """Catches an ERROR of right code whose number of ids is `len(tokenizer)`."""
    length = "pass\n\n    def __len__(self):\n        return len(self.chars)"
    source = TOKENIZER.replace("CharacterLevelTokenizer", "CharTokenizer").replace("tokenize", "encode")
    source = source.replace("deencode", "decode")
    assert judged(source.replace("self.vocab_size = len(self.chars)", length), "TOK-RANGE").conforms


WORDS = """
class Vocab:
    def __init__(self, text):
        self.words = ["<s>", "</s>", *sorted(set(text.split()))]
        self.vocab_size = len(self.words)

    def encode(self, text):
        return [0, *(self.words.index(w) for w in text.split() if w in self.words), 1]

    def decode(self, ids):
        return " ".join(self.words[int(i)] for i in ids)
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (WORDS, False),
        (TOKENIZER.replace("CharacterLevelTokenizer", "Vocab"), True),
        (TOKENIZER.replace("CharacterLevelTokenizer", "Vocab").replace("sorted(set(corpus))", "sorted(corpus)"), True),
    ],
    ids=["words", "characters", "characters-twice"],
)
def test_a_vocabulary_of_words_is_no_character_tokenizer(judged, source, found):
    """Catches red for a right vocabulary of words; one of characters with a mistake in it is judged."""
    report = judged(source + SCHEDULE.replace("SIGN", "+"), "TOK-CHAR-LEN", "SCHED-STEP0")
    assert ("CharTokenizer" in report.found) == found
    assert not any(result.verdict.red for result in report.results)


@pytest.mark.parametrize(
    ("theirs", "schedule"),
    [("generate_text", False), ("iterate", False), ("accelerate", False), ("rate", True), ("learning_rate_at", True)],
)
def test_only_a_rate_of_learning_names_a_schedule(theirs, schedule):
    """Catches `generate` taken for a schedule, for the rate within it."""
    assert ROLES["inverse_sqrt_schedule"].calls(theirs) == schedule


@pytest.mark.parametrize(
    ("tool", "theirs", "named"),
    [
        ("sliding_windows", "sliding_window_mask", False), ("sliding_windows", "make_windows", True),
        ("get_batch", "Batch.make_std_mask", False), ("get_batch", "calc_loss_batch", False),
        ("get_batch", "sample_batch", True),
    ],
)  # fmt: skip
def test_a_mask_or_a_loss_is_no_tool_for_data(tool, theirs, named):
    """Catches a remark that a mask of windows may be what cuts a text into windows."""
    assert ROLES[tool].calls(theirs) == named


def test_what_does_nothing_that_a_tool_does_is_not_judged(judged):
    """Catches red for a right function of the same name and arguments that returns something of another form."""
    other = SAMPLER.replace("AHEAD", "1").replace("return x,", "return {'rows': x.tolist()}; return x,")
    report = judged(other + SCHEDULE.replace("SIGN", "+"))
    assert "no clause about it holds" in report.unusable["get_batch"].problem
    assert not any(result.verdict.red and report.breaks(result) for result in report.results)
    assert not report.conforms


def test_what_only_looks_like_a_tool_is_not_judged(judged):
    """Catches red for a function that has such a name and does something else."""
    report = judged(SCHEDULE.replace("SIGN", "+") + UNSURE)
    assert dict(report.found) == {"cosine_schedule": "train:get_lr"}
    assert not any(r.verdict.red and report.breaks(r) for r in report.results)
    assert any(note.startswith("unsure: train_val_split: train:train_test_split may be it") for note in report.notes)


def test_a_mask_is_no_list_of_ids():
    """Catches `special_mask`, passed the special ids by its place, and red for what nobody calls so."""
    names = ("input_ids", "mask_token_id", "vocab_size", "special_mask")
    form = {"kind": "positional", "positional_only": False, "required": True, "default": None}
    export = {"path": "bert:mask_tokens", "kind": "function", "call": [{"name": name, **form} for name in names],
              "methods": {}}  # fmt: skip
    with pytest.raises(ToolMismatch, match="requires special_mask, which the contract does not have"):
        bind_tool(TOOLS["mask_tokens"], export, Config())


def test_a_mask_of_special_ids_is_made_of_them():
    """Catches `mask_tokens(…, special_mask)`, which is right and was not judged, as the contract passes a list."""
    names = ("input_ids", "mask_token_id", "vocab_size", "special_mask")
    call = [{"name": name, "kind": "positional", "positional_only": False, "required": True} for name in names]
    tool, item = TOOLS["mask_tokens"], Item("bert:mask_tokens", "function", None, call, None)
    table, sure = table_of(tool, ROLES["mask_tokens"], item, {})
    assert sure
    assert table["call"] == dict(zip(names, ("ids", "mask_id", "vocab_size", "special_positions"), strict=True))


@pytest.mark.parametrize(
    ("profile", "only", "told"), [("encoder", (), True), ("encoder", ("BERT",), False), ("lm", (), False)]
)
def test_what_has_a_tool_s_name_and_other_arguments_is_no_pass(profile, only, told):
    """Catches a mistake in `mask_tokens` that nobody sees since it takes its special ids from the top of the file."""
    tools = FoundTools({}, {}, {"mask_tokens": "bert:mask_tokens"})
    found = Completed(Draft("bert.py", "torch", (), (), {}, (), tools=tools), Config())
    unusable = found.called_otherwise(RunRequest("bert.py", profile=profile, only=only))
    assert ("bert:mask_tokens" in str(unusable.get("mask_tokens"))) is told


LOOKALIKES = """
def get_batch(source, i):
    return source[i : i + 35], source[i : i + 35].reshape(-1)

def batchify(data, bsz):
    return data[: len(data) // bsz * bsz].reshape(bsz, -1).T

def cosine_with_warmup(warmup, total, floor=0.1):
    return lambda step: min(1.0, step / warmup)

def estimate_loss():
    return 0.0

def perplexity(model, stream, batches=10):
    return 2.0

def plot_lr(it, ax):
    return ax
"""


def test_what_takes_a_tool_s_arguments_and_cannot_be_called_is_no_pass(tmp_path):
    """Catches a mistake in batches that nobody judges, and steps of a script that keep right code from passing."""
    (tmp_path / "train.py").write_text(LOOKALIKES)
    wanted = ("get_batch", "cosine_schedule", "evaluate", "perplexity")
    with imported(RunRequest(str(tmp_path / "train.py"), isolation="none")) as (implementation, _):
        tools = found_tools(implementation, definitions(implementation), wanted, "lm")
    assert set(tools.near) == {*wanted}
    assert {name: told.partition(" ")[0] for name, told in tools.lookalikes.items()} == {
        "get_batch": "train:get_batch", "cosine_schedule": "train:cosine_with_warmup",
    }  # fmt: skip
    bare = empty(Beside("lm", frozenset(), Config(), near=tools.near, lookalikes=tools.lookalikes))
    assert {*bare.unusable} == {"get_batch", "cosine_schedule"}
    assert not bare.conforms


PIECES = """
bptt = 35

def batchify(data, bsz):
    return data[: len(data) // bsz * bsz].reshape(bsz, -1).T

def get_batch(source, i):
    length = min(bptt, len(source) - 1 - i)
    return source[i : i + length], source[i + AHEAD : i + AHEAD + length].reshape(-1)
"""


@pytest.mark.parametrize(
    ("source", "near"),
    [
        (PIECES.replace("AHEAD", "1"), False), (PIECES.replace("AHEAD", "0"), True),
        (PIECES.replace("AHEAD", "1").replace("i):", "i, bptt):"), False),
        (PIECES.replace("AHEAD", "1").replace(".reshape(-1)", "[::-1]"), True),
        (PIECES.replace("AHEAD", "1").replace("[i", "[:, i").replace("len(source)", "source.shape[1]"), False),
    ],
    ids=["of-a-global-length", "not-shifted", "of-a-length", "reversed", "of-rows"],
)  # fmt: skip
def test_a_piece_at_a_place_is_looked_at_and_no_batch(tmp_path, source, near):
    """Would break if a right get_batch(source, i) were left open, or one that does not shift its targets passed."""
    (tmp_path / "train.py").write_text(source)
    with imported(RunRequest(str(tmp_path / "train.py"), isolation="none")) as (implementation, _):
        tools = found_tools(implementation, definitions(implementation), ["get_batch"], "lm")
    assert not tools.tables
    assert bool(tools.lookalikes) is near


def empty(judged):
    """Return the report of a run beside another in which one clause passes."""
    passed = Result(next(iter(clauses_of("lm").values())), Verdict.PASS)
    report = Report("train.py", "train.py", "torch", profile="lm", results=[passed], complete=True)
    assert report.conforms
    return reported_as_found(report, judged)


ALIKE = DATA_SET.replace("AHEAD", "1")
SHIFTED_LATER = SIDE_BY_SIDE.replace("AHEAD", "0")


@pytest.mark.parametrize(
    ("source", "near"),
    [
        (ALIKE.replace("return cut[:-1], cut[1:1 + self.block_size]", "return cut"), False),
        (ALIKE.replace("place :", "3 * place :").replace("place +", "3 * place +"), True),
        (ALIKE.replace("return cut[:-1]", "return cut[:-1].float()"), True),
        (SHIFTED_LATER, True),
        (ALIKE.replace("data, block_size)", "pairs, vocab)").replace("(data), block_size", "(pairs), 8"), False),
    ],
    ids=["windows-alone", "another-stride", "no-ids", "labels-of-the-caller", "pairs"],
)
def test_a_data_set_that_nobody_can_judge_is_no_pass(tmp_path, source, near):
    """Catches a mistake in a data set that ends with 0, and one of pairs that keeps right code from passing."""
    (tmp_path / "train.py").write_text(source)
    with imported(RunRequest(str(tmp_path / "train.py"), isolation="none")) as (implementation, _):
        tools = found_tools(implementation, definitions(implementation), ["sliding_windows"], "lm")
    assert not tools.tables
    assert bool(tools.lookalikes) is near


def test_a_draft_says_how_tools_are_called(tmp_path):
    """Catches a draft for profile lm that is refused, or leaves out how a tool is called."""
    (tmp_path / "train.py").write_text(SAMPLER.replace("AHEAD", "1"))
    text = draft(RunRequest(str(tmp_path / "train.py"), profile="lm"), {}).text()
    assert "[components.get_batch]" in text
    assert 'context_length = "block_size", device = "\'cpu\'"' in text
