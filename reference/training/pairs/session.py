"""From a configuration with a task, or the folder of such a run, to a run; from a checkpoint to a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformkit.reference.checkpoints import Checkpoint, read_checkpoint, replace_file
from conformkit.reference.errors import CheckpointError
from conformkit.reference.seq2seq.model import Transformer
from conformkit.reference.training import history, metrics
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, config_from, with_changes
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.pairs.batches import as_batch
from conformkit.reference.training.pairs.corpus import PairCorpus, load_pairs, vocabularies
from conformkit.reference.training.pairs.maps import seq2seq_attention_maps
from conformkit.reference.training.pairs.rules import Pair
from conformkit.reference.training.pairs.run import PairsRun, build_translator
from conformkit.reference.training.pairs.vocabulary import Vocabulary
from conformkit.reference.training.pairs.writing import BLEU_LACKING, score, write, written

__all__ = ["PairsSession", "Translator", "begin_pairs", "resume_pairs", "translator_from"]

Sides = tuple[Vocabulary, Vocabulary]
SHOWN = 5
"""Sources that are written in between."""


@dataclass(frozen=True)
class Translator:
    """An encoder-decoder from a checkpoint, with what turns texts into its ids."""

    model: Transformer
    sides: Sides
    config: TrainingConfig
    step: int


@dataclass(frozen=True)
class PairsSession:
    """A run, its folder, and the pairs that it learns from."""

    run: PairsRun
    folder: RunFolder
    corpus: PairCorpus

    floor = None
    """The least possible loss is not known."""

    @property
    def description(self) -> str:
        """What is about to be trained, in a sentence."""
        run, config = self.run, self.run.config
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        return (
            f"{parameters:,} parameters, vocabularies {run.sides[0].vocab_size} and {run.sides[1].vocab_size}, "
            f"{len(self.corpus.train):,} pairs to learn from, {len(self.corpus.val):,} to validate on, "
            f"{config.training.steps:,} steps of {config.training.batch_size * config.training.accumulate:,} pairs"
        )

    @property
    def held_out(self) -> list[Pair]:
        """The pairs that are written at the end, evenly spread over those held out."""
        count = min(self.run.config.samples.held_out, len(self.corpus.val))
        return [self.corpus.val[number * len(self.corpus.val) // count] for number in range(count)]

    def looked(self, run: PairsRun) -> None:
        """Keep where the target looks in the source, for the pair that the report shows."""
        source, target = self.shown
        ids = run.sides[0].encode(source), run.sides[1].encode(target)
        (src, tgt), _ = as_batch([ids], run.device)
        history.keep(self.folder, run.step, seq2seq_attention_maps(run.model, src, tgt).cross)

    @property
    def shown(self) -> Pair:
        """The held-out pair whose attention is drawn: one of a usual length."""
        return sorted(self.held_out, key=lambda pair: len(pair[0]))[len(self.held_out) // 2]

    def scores(self) -> list[str]:
        """Return how good what the best model writes is, as lines."""
        found = json.loads(self.folder.scores.read_text(encoding="utf-8"))
        lines = [f"{name}: {_told(found[name])}" for name in ("greedy", "beam")]
        lacking = found["greedy"]["bleu"] is None and self.run.sides[1].kind == "word"
        return [*lines, *([BLEU_LACKING] if lacking else [])]

    def sample(self, run: PairsRun) -> None:
        """Write a few held-out sources with the model as it is, greedily."""
        pairs = self.held_out[:SHOWN]
        texts = write(run.model, run.sides, [source for source, _ in pairs])
        rows = zip(pairs, texts, strict=True)
        metrics.append(
            self.folder.samples,
            [{"step": run.step, "source": source, "wanted": wanted, "greedy": text} for (source, wanted), text in rows],
        )

    def sample_best(self) -> None:
        """Write all sources that are held out for it with the best model, and the scores of what it wrote."""
        best = translator_from(read_checkpoint(self.folder.best), self.run.config.speed.device)
        found = written(best.model, best.sides, self.held_out, self.run.config.samples)
        wanted = [one.wanted for one in found]
        scores = {
            name: asdict(score([getattr(one, name) for one in found], wanted, best.sides[1]))
            for name in ("greedy", "beam")
        }
        content = {"step": best.step, "pairs": len(found), **scores}
        replace_file(self.folder.scores, (json.dumps(content, indent=2) + "\n").encode())
        kept = [row for row in metrics.read_lines(self.folder.samples) if "beam" not in row]
        lines = [*kept, *(one.record(best.step) for one in found)]
        replace_file(self.folder.samples, "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines).encode())


def begin_pairs(config: TrainingConfig, place: Path, *, again: bool = False) -> PairsSession:
    """Prepare a new run. Everything that can be refused is refused before the folder is made.

    `again` begins a run anew in its folder.
    """
    corpus = load_pairs(config.data)
    config = with_changes(config, {"data.corpus": corpus.name})
    run = PairsRun(config, corpus, vocabularies(corpus, config.data))
    return PairsSession(run, RunFolder.create(place, config, again=again), corpus)


def resume_pairs(folder: RunFolder, config: TrainingConfig, saved: Checkpoint) -> PairsSession:
    """Prepare to resume from a checkpoint of the folder's run. Raises CheckpointError, and as `begin_pairs`."""
    corpus = load_pairs(config.data)
    run = PairsRun(config, corpus, vocabularies(corpus, config.data))
    run.restore(saved)
    folder.rewind(run.step)
    return PairsSession(run, folder, corpus)


def translator_from(saved: Checkpoint, device: str = "cpu") -> Translator:
    """Return the model of a checkpoint. Raises CheckpointError."""
    try:
        config = config_from(saved.extra["config"])
        source, target = (Vocabulary.from_object(side) for side in _listed(saved.extra["tokenizer"]))
    except (TrainingConfigError, KeyError, TypeError, ValueError) as error:
        wanted = "one that `conform train` wrote"
        raise CheckpointError(str(saved.path), f"of another kind ({error})", wanted) from error
    model = build_translator(config, (source.vocab_size, target.vocab_size))
    saved.restore(model)
    return Translator(model.to(device).eval(), (source, target), config, saved.step)


def _told(one: Mapping[str, Any]) -> str:
    bleu = "" if one["bleu"] is None else f", BLEU {one['bleu']:.2f}"
    return f"{one['exact']:.1%} of held-out targets exactly right, {one['tokens']:.1%} of their tokens{bleu}"


def _listed(kept: Any) -> list[Mapping[str, Any]]:
    if not isinstance(kept, list):
        raise TypeError("it holds no two vocabularies")
    return kept
