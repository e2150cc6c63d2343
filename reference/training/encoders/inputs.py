"""Inputs to look into an encoder with: held-out ones, or drawn ones of the same kind."""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.training.corpus import load_corpus, tokenize
from conformkit.reference.training.encoders.digits import load_digits
from conformkit.reference.training.encoders.masked import MaskedRun
from conformkit.reference.training.encoders.trained import EXTENT, SPECIAL, Classifier, MaskedModel

__all__ = ["drawn_inputs", "held_out_inputs"]


def held_out_inputs(trained: MaskedModel | Classifier, rows: int) -> tuple[Tensor, ...]:
    """Return at most `rows` held-out rows. Raises RefusalError or OSError where the data can't be read."""
    config = trained.config
    if isinstance(trained, Classifier):
        return (load_digits(config.data.fraction).val[0][:rows],)
    tokens = tokenize(load_corpus(config.data.corpus).text, trained.tokenizer, config.data.fraction)
    with torch.random.fork_rng([]):
        run = MaskedRun(config, tokens, trained.tokenizer)
    (ids, segments), _ = run.validation[0]
    return ids[:rows], segments[:rows]


def drawn_inputs(trained: MaskedModel | Classifier, rows: int) -> tuple[Tensor, ...]:
    """Return drawn rows, the same ones every time."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(trained, Classifier):
        return (torch.rand(rows, 1, EXTENT, EXTENT, generator=generator),)
    size, length = trained.tokenizer.vocab_size, trained.config.model.block_size
    ids = torch.randint(SPECIAL, size + SPECIAL, (rows, length), generator=generator)
    return ids, torch.zeros_like(ids)
