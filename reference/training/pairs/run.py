"""An encoder-decoder and the pairs that it learns from, by teacher forcing.

    loss = mean over the targets that count of -log p(y_t | y_<t, x)        the decoder reads the right y_<t, shifted

Label smoothing acts while learning; validation is plain cross-entropy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.dropout import place_dropout
from conformkit.reference.generation import _evaluating
from conformkit.reference.loss import cross_entropy
from conformkit.reference.seq2seq.model import Transformer
from conformkit.reference.steps import IGNORED
from conformkit.reference.stochastic_depth import place_stochastic_depth
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.pairs.batches import Buckets, PairBatch, held_out_batches
from conformkit.reference.training.pairs.corpus import PairCorpus, encoded
from conformkit.reference.training.pairs.vocabulary import PAD, Vocabulary
from conformkit.reference.training.run import Run
from conformkit.reference.training.speed import Fast, check_device

__all__ = ["PairsRun", "TeacherForced", "build_translator"]

Sides = tuple[Vocabulary, Vocabulary]
"""The vocabularies of sources and targets."""


def build_translator(config: TrainingConfig, sides: tuple[int, int]) -> Transformer:
    """Return a new encoder-decoder of a configuration, on the CPU; `sides` are the sizes of both vocabularies."""
    sizes = config.model
    model = Transformer(
        *sides, sizes.d_model, sizes.num_heads, sizes.num_layers, sizes.num_decoder_layers or sizes.num_layers,
        sizes.d_ff, sizes.block_size, sizes.dropout, PAD, variant=config.variant,
    )  # fmt: skip
    place_dropout(model, attention=sizes.attention_dropout, embeddings=sizes.embedding_dropout)
    place_stochastic_depth(model, sizes.layer_dropout)
    return model


class TeacherForced(nn.Module):
    """An encoder-decoder that is called with a source and a shifted target as one argument, as batches hold them.

    Shapes: (src (B, S), tgt_in (B, T)) → logits (B, T, V_tgt)
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, given: tuple[Tensor, Tensor]) -> Tensor:
        """Map a source and a target to logits."""
        logits: Tensor = self.model(*given)
        return logits


class PairsRun(Run):
    """An encoder-decoder, and the pairs that it learns from."""

    def __init__(self, config: TrainingConfig, corpus: PairCorpus, sides: Sides) -> None:
        check_device(config.speed.device)
        torch.manual_seed(config.training.seed)
        self.model: Transformer
        model = build_translator(config, (sides[0].vocab_size, sides[1].vocab_size)).to(config.speed.device)
        super().__init__(config, model, Fast(TeacherForced(model), config.speed), corpus.sha256)
        self.sides = sides
        learned, held_out = (encoded(pairs, sides, config.model.block_size) for pairs in (corpus.train, corpus.val))
        self.buckets = Buckets(learned, config.training.buckets)
        training = config.training
        self.validation = held_out_batches(held_out, training.batch_size, training.eval_batches, self.device)
        self.mean_length = sum(len(target) + 1 for _, target in learned) / len(learned)

    @property
    def tokens_a_step(self) -> int:
        """How many targets an update learns from, on average."""
        return round(self.config.training.batch_size * self.config.training.accumulate * self.mean_length)

    @property
    def vocabulary(self) -> Any:
        """Both vocabularies."""
        return [side.as_object() for side in self.sides]

    @property
    def bare(self) -> nn.Module:
        """The model as batches call it."""
        return TeacherForced(self.model)

    def draw(self) -> PairBatch:
        """Draw pairs of similar length, in which some targets before others may be the model's own."""
        given, wanted = self.buckets.draw(self.config.training.batch_size, self.device)
        training = self.config.training
        if training.own_ids > 0:
            given = given[0], self._guessed(*given, training.own_ids * min(self.step / training.steps, 1.0))
        return given, wanted

    @torch.no_grad()
    def _guessed(self, src: Tensor, tgt: Tensor, share: float) -> Tensor:
        """Return decoder inputs (B, T) with a share of the model's best guesses, made from the right ids before each.

        Bengio et al. 2015, by two passes: Mihaylova & Martins 2019. The first id and padding stay.
        """
        with _evaluating(self.fast):
            guesses = self.fast((src, tgt)).argmax(dim=-1)[:, :-1]  # (B, T - 1)
        taken = (torch.rand(guesses.shape, device=tgt.device) < share) & (tgt[:, 1:] != PAD)
        return torch.cat([tgt[:, :1], torch.where(taken, guesses, tgt[:, 1:])], dim=1)

    @torch.no_grad()
    def measured(self) -> dict[str, float]:
        """Measure loss and accuracy of the held-out targets, given the right ids before each."""
        total, right, count = 0.0, 0, 0
        with _evaluating(self.fast):
            for given, wanted in self.validation:
                logits, counted = self.fast(given), wanted != IGNORED
                tokens = int(counted.sum())
                total += cross_entropy(logits, wanted, ignore_index=IGNORED).item() * tokens
                right += int((logits.argmax(dim=-1) == wanted)[counted].sum())
                count += tokens
        return {"loss": total / count, "accuracy": right / count}
