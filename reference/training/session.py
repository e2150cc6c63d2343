"""From a configuration, or from the folder of a run, to a run that is ready to train; from a checkpoint to a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.checkpoints import Checkpoint, read_checkpoint
from conformkit.reference.errors import CheckpointError
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.tokenizers import Tokenizer, tokenizer_from_json
from conformkit.reference.training import history, metrics, sampling
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, config_from, with_changes
from conformkit.reference.training.corpus import Corpus, Tokens, load_corpus, new_tokenizer, tokenize
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.run import TrainingRun, build_model
from conformkit.reference.training.source import floor_in_windows

__all__ = ["Trained", "TrainingSession", "begin", "load_trained", "read_best", "resume_text", "trained_from"]

SHOWN = 32
"""Tokens whose attention is drawn."""


@dataclass(frozen=True)
class TrainingSession:
    """A run, its folder, and the text that it learns from."""

    run: TrainingRun
    folder: RunFolder
    corpus: Corpus
    tokens: Tokens

    @property
    def description(self) -> str:
        """What is about to be trained, in a sentence."""
        run, tokens = self.run, self.tokens
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        return (
            f"{parameters:,} parameters, vocabulary {run.tokenizer.vocab_size}, {len(tokens.train):,} tokens to learn "
            f"from, {len(tokens.val):,} to validate on, {run.config.training.steps:,} steps of {run.tokens_a_step:,} "
            "tokens"
        )

    @property
    def beginning(self) -> str:
        """The first few tokens of the validation text, which stand for an empty prompt."""
        return self.run.tokenizer.decode(self.tokens.val[: self.run.config.model.block_size // 4 + 1])

    @property
    def floor(self) -> float | None:
        """The least loss, in nats a token, that any model can reach, where that is known."""
        config = self.run.config
        known = self.corpus.name == "synthetic" and config.data.tokenizer == "char"
        return floor_in_windows(config.model.block_size) if known else None

    def looked(self, run: TrainingRun) -> None:
        """Keep who looks at whom at the beginning of the validation text."""
        history.keep(self.folder, run.step, attention_maps(run.model, self.shown[None]))

    @property
    def shown(self) -> Tensor:
        """The ids whose attention is drawn: (T,)."""
        length = min(SHOWN, self.run.config.model.block_size, len(self.tokens.val))
        return self.tokens.val[:length].to(self.run.device)

    def scores(self) -> list[str]:
        """Return nothing: a text has no right continuation."""
        return []

    def sample(self, run: TrainingRun) -> None:
        """Write the samples that the configuration asks for, of the model as it is."""
        self._write_samples(run.model, run.step)

    def sample_best(self) -> None:
        """Write them of the best model, once."""
        best = load_trained(self.folder.path, self.run.config.speed.device)
        if not any(record["step"] == best.step for record in metrics.read_lines(self.folder.samples)):
            self._write_samples(best.model, best.step)

    def _write_samples(self, model: TinyTransformerLM, step: int) -> None:
        config = self.run.config
        found = sampling.samples(model, self.run.tokenizer, config.samples, self.beginning, step, config.training.seed)
        metrics.append(self.folder.samples, [sample.record() for sample in found])


@dataclass(frozen=True)
class Trained:
    """A model from a checkpoint, with what turns text into its ids."""

    model: TinyTransformerLM
    tokenizer: Tokenizer
    config: TrainingConfig
    step: int


def begin(config: TrainingConfig, place: Path, *, again: bool = False) -> TrainingSession:
    """Prepare a new run. Everything that can be refused is refused before the folder is made.

    `again` begins a run anew in its folder.
    """
    corpus = load_corpus(config.data.corpus)
    config = with_changes(config, {"data.corpus": corpus.name})
    tokenizer = new_tokenizer(corpus.text, config.data)
    tokens = tokenize(corpus.text, tokenizer, config.data.fraction)
    run = TrainingRun(config, tokens, tokenizer)
    _check_prompts(config, tokenizer)
    return TrainingSession(run, RunFolder.create(place, config, again=again), corpus, tokens)


def resume_text(folder: RunFolder, config: TrainingConfig, saved: Checkpoint) -> TrainingSession:
    """Prepare to resume from a checkpoint of the folder's run. Raises CheckpointError, and what `begin` raises."""
    tokenizer = tokenizer_from_json(saved.extra["tokenizer"])
    corpus = load_corpus(config.data.corpus)
    tokens = tokenize(corpus.text, tokenizer, config.data.fraction)
    run = TrainingRun(config, tokens, tokenizer)
    run.restore(saved)
    folder.rewind(run.step)
    return TrainingSession(run, folder, corpus, tokens)


def load_trained(path: Path, device: str = "cpu") -> Trained:
    """Return the model of a checkpoint, or of the best one in the folder of a run.

    Raises: CheckpointError, FolderError; OSError where the file can't be read.
    """
    return trained_from(read_best(path), device)


def read_best(path: Path) -> Checkpoint:
    """Return a checkpoint, or the best one in the folder of a run. Raises as `load_trained`."""
    return read_checkpoint(_best(RunFolder.open(path)) if path.is_dir() else path)


def trained_from(saved: Checkpoint, device: str = "cpu") -> Trained:
    """Return the model of a checkpoint. Raises CheckpointError."""
    place = saved.path
    if "tokenizer" not in saved.extra or "config" not in saved.extra:
        raise CheckpointError(str(place), "without a tokenizer", "one that `conform train` wrote")
    try:
        config = config_from(saved.extra["config"])
        tokenizer = tokenizer_from_json(saved.extra["tokenizer"])
    except (TrainingConfigError, json.JSONDecodeError, KeyError) as error:
        raise CheckpointError(str(place), f"of another kind ({error})", "one that `conform train` wrote") from error
    model = build_model(config, tokenizer.vocab_size)
    saved.restore(model)
    return Trained(model.to(device).eval(), tokenizer, config, saved.step)


def _best(folder: RunFolder) -> Path:
    return folder.best if folder.best.exists() else folder.newest


def _check_prompts(config: TrainingConfig, tokenizer: Tokenizer) -> None:
    """Refuse a prompt that can't be written in the vocabulary before hours of training, not after."""
    for prompt in config.samples.prompts:
        tokenizer.encode(prompt)
