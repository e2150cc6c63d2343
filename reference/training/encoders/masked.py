"""BERT learns from a text: which ids were hidden, and whether a second part follows the first.

    row = [CLS] A [SEP] B [SEP]        B follows A in the text, or, half of the time, comes from anywhere else
    loss = cross-entropy at the chosen ids + cross-entropy of "does B follow?"

Devlin et al. 2019, §3.1. What is chosen becomes [MASK], another id or stays, by `mask_tokens`; with whole words, all
pieces of a word are chosen together, as its authors did later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.checkpoints import Checkpoint
from conformkit.reference.encoder.pretraining import BertForPreTraining
from conformkit.reference.generation import _evaluating
from conformkit.reference.loss import cross_entropy
from conformkit.reference.seq2seq.masked_language import mask_tokens
from conformkit.reference.steps import IGNORED, Batch
from conformkit.reference.tokenizers import Tokenizer, tokenizer_from_json
from conformkit.reference.training import metrics
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, with_changes
from conformkit.reference.training.corpus import Corpus, Tokens, load_corpus, new_tokenizer, tokenize
from conformkit.reference.training.encoders.session import EncoderSession
from conformkit.reference.training.encoders.trained import SPECIAL, MaskedModel, build_bert
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.run import Run
from conformkit.reference.training.speed import Fast, check_device

__all__ = [
    "MaskedRun",
    "MaskedSession",
    "begin_masked",
    "blanks",
    "fill",
    "hide_words",
    "resume_masked",
    "word_numbers",
]

PAD, CLS, SEP, MASK = range(SPECIAL)
FOLLOWS, ELSEWHERE = 0, 1
"""The classes of the next-sentence head."""
SHOWN = 40
"""Hidden places on the page."""
TOKENS = 32
"""Tokens whose attention is drawn."""


class _Pretraining(nn.Module):
    """BERT called with one argument, as batches hold it: ids and segments."""

    def __init__(self, model: BertForPreTraining) -> None:
        super().__init__()
        self.model = model

    def forward(self, given: tuple[Tensor, Tensor]) -> Any:
        """Map ids and segments (B, T) to logits (B, T, V) and (B, 2)."""
        return self.model(*given)


class MaskedRun(Run):
    """BERT, and the text that it learns from."""

    def __init__(self, config: TrainingConfig, tokens: Tokens, tokenizer: Tokenizer) -> None:
        _check(config)
        check_device(config.speed.device)
        tokens.check_windows(config.model.block_size)
        torch.manual_seed(config.training.seed)
        self.model: BertForPreTraining
        model = build_bert(config, tokenizer.vocab_size).to(config.speed.device)
        fast = Fast(_Pretraining(model), config.speed)
        super().__init__(config, model, fast, tokens.sha256)
        self.tokenizer = tokenizer
        self.criterion = self._losses
        self.ids, self.words = _numbered(tokens.train, tokenizer, whole=config.data.whole_words)
        val = _numbered(tokens.val, tokenizer, whole=config.data.whole_words)
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            self.validation = [self._batch(*val) for _ in range(config.training.eval_batches)]

    @property
    def vocabulary(self) -> str:
        """The tokenizer as JSON."""
        return self.tokenizer.to_json()

    @property
    def bare(self) -> nn.Module:
        """The model as batches call it."""
        return _Pretraining(self.model)

    def draw(self) -> Batch:
        """Draw pairs of parts of the training text."""
        return self._batch(self.ids, self.words)

    @torch.no_grad()
    def measured(self) -> dict[str, float]:
        """Measure loss and accuracy at hidden ids, and the accuracy of the next-sentence head."""
        total, right, count, next_right, rows = 0.0, 0, 0, 0, 0
        with _evaluating(self.fast):
            for given, wanted in self.validation:
                logits, follows = _both(self.fast(given))
                labels = wanted[:, 1:]
                chosen = labels != IGNORED
                number = int(chosen.sum())
                total += cross_entropy(logits[:, 1:], labels).item() * number
                right += int((logits[:, 1:].argmax(dim=-1) == labels)[chosen].sum())
                count += number
                if follows is not None:
                    next_right += int((follows.argmax(dim=-1) == wanted[:, 0]).sum())
                rows += len(wanted)
        found = {"loss": total / max(count, 1), "accuracy": right / max(count, 1)}
        return found | ({"next_sentence": next_right / rows} if self.model.next_sentence is not None else {})

    def _batch(self, ids: Tensor, words: Tensor) -> Batch:
        """Draw rows of two parts, hide ids, and put the class of the pair where the class token stands."""
        size, length = self.config.training.batch_size, self.config.model.block_size
        first = (length - 3) // 2
        second = length - 3 - first
        starts = torch.randint(len(ids) - first - second + 1, (size,))  # (B,)
        apart = torch.rand(size) < 0.5
        other = torch.where(apart, torch.randint(len(ids) - second + 1, (size,)), starts + first)  # (B,)
        a = starts[:, None] + torch.arange(first)  # (B, A)
        b = other[:, None] + torch.arange(second)  # (B, B)
        rows = _joined(ids[a], ids[b])  # (B, T)
        segments = torch.cat([torch.zeros(size, first + 2), torch.ones(size, second + 1)], dim=1).long()  # (B, T)
        if self.config.data.whole_words:
            own = _joined(words[a], words[b], filler=-1)  # (B, T)
            inputs, labels = hide_words(rows, own, self.model_size, self.config.data.mask_probability)
        else:
            inputs, labels = mask_tokens(rows, MASK, self.model_size, range(SPECIAL), self.config.data.mask_probability)
        labels[:, 0] = apart.long()
        device = self.config.speed.device
        return (inputs.to(device), segments.to(device)), labels.to(device)

    @property
    def model_size(self) -> int:
        """The number of the model's ids, special ones included."""
        return self.tokenizer.vocab_size + SPECIAL

    def _losses(self, out: Any, wanted: Tensor) -> Tensor:
        """Return the sum of both losses. Shapes: logits (B, T, V), (B, 2), targets (B, T) → ()."""
        logits, follows = _both(out)
        loss = cross_entropy(logits[:, 1:], wanted[:, 1:], label_smoothing=self.config.training.label_smoothing)
        return loss if follows is None else loss + cross_entropy(follows, wanted[:, 0])


@dataclass(frozen=True)
class MaskedSession(EncoderSession):
    """A run, its folder, and the text that it learns from."""

    run: MaskedRun
    corpus: Corpus
    tokens: Tokens

    @property
    def description(self) -> str:
        """What is about to be trained, in a sentence."""
        run = self.run
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        return (
            f"{parameters:,} parameters, vocabulary {run.model_size}, {len(self.tokens.train):,} tokens to learn from, "
            f"{len(self.tokens.val):,} to validate on, {run.config.training.steps:,} steps of {run.tokens_a_step:,} "
            "tokens"
        )

    @property
    def shown(self) -> tuple[Tensor, ...]:
        """The ids and segments whose attention is drawn: the beginning of the first held-out row, (1, T) each."""
        (ids, segments), _ = self.run.validation[0]
        return ids[:1, :TOKENS], segments[:1, :TOKENS]

    def sample(self, run: MaskedRun) -> None:
        """Guess hidden ids of the first validation batch, and keep the guesses."""
        metrics.append(self.folder.samples, self.guesses(run.model, run.step))

    def scores(self) -> list[str]:
        """Return the accuracies of the best evaluation, as a line."""
        best = self.best
        line = f"hidden ids: {best['accuracy']:.1%} guessed right"
        return [line + (f"; next sentence: {best['next_sentence']:.1%}" if "next_sentence" in best else "")]

    @torch.no_grad()
    def guesses(self, model: BertForPreTraining, step: int) -> list[dict[str, Any]]:
        """Return the hidden places of the first validation batch with what stood there and what is guessed."""
        (inputs, segments), wanted = self.run.validation[0]
        with _evaluating(model):
            logits, _ = _both(model(inputs, segments))
        found = []
        for row, place in (wanted[:, 1:] != IGNORED).nonzero().tolist()[:SHOWN]:
            before, after = inputs[row, max(place - 7, 1) : place + 1], inputs[row, place + 2 : place + 10]
            shares = logits[row, place + 1].softmax(dim=-1)
            guess = int(shares.argmax())
            found.append({
                "step": step, "before": _text(self.run.tokenizer, before.tolist()),
                "wanted": _text(self.run.tokenizer, [int(wanted[row, place + 1])]),
                "guess": _text(self.run.tokenizer, [guess]), "probability": round(shares[guess].item(), 4),
                "after": _text(self.run.tokenizer, after.tolist()),
            })  # fmt: skip
        return found


def begin_masked(config: TrainingConfig, place: Path, *, again: bool = False) -> MaskedSession:
    """Prepare a new run. Everything that can be refused is refused before the folder is made.

    `again` begins a run anew in its folder.
    """
    _check(config)
    corpus = load_corpus(config.data.corpus)
    config = with_changes(config, {"data.corpus": corpus.name})
    tokenizer = new_tokenizer(corpus.text, config.data)
    tokens = tokenize(corpus.text, tokenizer, config.data.fraction)
    run = MaskedRun(config, tokens, tokenizer)
    return MaskedSession(run, RunFolder.create(place, config, again=again), corpus, tokens)


def resume_masked(folder: RunFolder, config: TrainingConfig, saved: Checkpoint) -> MaskedSession:
    """Prepare to resume from a checkpoint of the folder's run. Raises CheckpointError, and as `begin_masked`."""
    corpus = load_corpus(config.data.corpus)
    tokenizer = tokenizer_from_json(saved.extra["tokenizer"])
    tokens = tokenize(corpus.text, tokenizer, config.data.fraction)
    run = MaskedRun(config, tokens, tokenizer)
    run.restore(saved)
    folder.rewind(run.step)
    return MaskedSession(run, folder, corpus, tokens)


def word_numbers(pieces: Sequence[str]) -> list[int]:
    """Number words through a text that was cut into pieces: a piece goes on where letters or digits touch."""
    found, number, before = [], -1, " "
    for piece in pieces:
        if not (before[-1:].isalnum() and piece[:1].isalnum()):
            number += 1
        found.append(number)
        before = piece or before
    return found


def hide_words(ids: Tensor, words: Tensor, vocab_size: int, probability: float) -> tuple[Tensor, Tensor]:
    """Choose whole words to be guessed, and hide most of them, all pieces in the same way.

    Shapes: ids (B, T), words (B, T), -1 for what is never chosen → inputs (B, T), labels (B, T)
    Source: Devlin et al. 2019, appendix A.1, and the models that its authors published in May 2019.
    """
    _, groups = torch.unique_consecutive(words, return_inverse=True)  # a number for each word of each row
    draws = torch.rand(2, int(groups.max()) + 1)  # chosen?, and what becomes of it
    chosen = (draws[0][groups] < probability) & (words >= 0)  # (B, T)
    fate = draws[1][groups]  # (B, T)
    labels = ids.masked_fill(~chosen, IGNORED)
    inputs = ids.masked_fill(chosen & (fate < 0.8), MASK)
    replaced = chosen & (fate >= 0.8) & (fate < 0.9)
    return torch.where(replaced, torch.randint_like(ids, SPECIAL, vocab_size), inputs), labels


@torch.no_grad()
def fill(model: BertForPreTraining, tokenizer: Tokenizer, text: str, most: int = 5) -> list[list[tuple[str, float]]]:
    """Return for each [MASK] in a text the most probable pieces with their probabilities.

    Raises: CharacterError for a character that the vocabulary lacks; ShapeError for a text that is too long.
    """
    ids = [CLS]
    for number, part in enumerate(text.split("[MASK]")):
        ids += [MASK] if number else []
        ids += [number + SPECIAL for number in tokenizer.encode(part)] if part else []
    rows = torch.tensor([[*ids, SEP]], device=model.head.decoder.weight.device)  # (1, T)
    with _evaluating(model):
        logits, _ = _both(model(rows))
    found = []
    for place in (rows[0] == MASK).nonzero()[:, 0].tolist():
        shares, best = logits[0, place, SPECIAL:].softmax(dim=-1).topk(min(most, logits.shape[-1] - SPECIAL))
        pieces = [tokenizer.decode([number]) for number in best.tolist()]
        found.append(list(zip(pieces, shares.tolist(), strict=True)))
    return found


def blanks(trained: MaskedModel, count: int = 5, most: int = 16) -> list[tuple[str, str]]:
    """Return texts of the held-out part with one piece hidden in each, and that piece. Raises CorpusError, OSError."""
    data, length = trained.config.data, max(1, min(most, trained.config.model.block_size - SPECIAL))
    ids = tokenize(load_corpus(data.corpus).text, trained.tokenizer, data.fraction).val.tolist()
    decode, middle = trained.tokenizer.decode, length // 2
    found = []
    for start in range(0, len(ids) - length + 1, max(len(ids) // count, 1)):
        row = ids[start : start + length]
        found.append((f"{decode(row[:middle])}[MASK]{decode(row[middle + 1 :])}", decode([row[middle]])))
    return found[:count]


def _check(config: TrainingConfig) -> None:
    if config.model.block_size < 5:
        raise TrainingConfigError("model.block_size", config.model.block_size, "at least 5: three marks and two parts")


def _numbered(ids: Tensor, tokenizer: Tokenizer, *, whole: bool) -> tuple[Tensor, Tensor]:
    """Return a text as the model's ids, and the number of each id's word: (N,), (N,)."""
    if not whole:
        return ids + SPECIAL, torch.zeros_like(ids)
    known = {number: tokenizer.decode([number]) for number in set(ids.tolist())}
    return ids + SPECIAL, torch.tensor(word_numbers([known[number] for number in ids.tolist()]))


def _joined(a: Tensor, b: Tensor, filler: int | None = None) -> Tensor:
    """Put two parts between marks: (B, A), (B, B) → (B, A + B + 3)."""
    marks = [a.new_full((len(a), 1), number if filler is None else filler) for number in (CLS, SEP, SEP)]
    return torch.cat([marks[0], a, marks[1], b, marks[2]], dim=1)


def _both(out: Any) -> tuple[Tensor, Tensor | None]:
    """Return logits and the next-sentence head's, where the variant has one."""
    return out if isinstance(out, tuple) else (out, None)


def _text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    names = {PAD: "", CLS: "", SEP: " ‖ ", MASK: "▢"}
    return "".join(names[number] if number < SPECIAL else tokenizer.decode([number - SPECIAL]) for number in ids)
