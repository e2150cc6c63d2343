"""Encoders of a configuration, new and from a checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conformkit.reference.checkpoints import Checkpoint
from conformkit.reference.dropout import place_dropout
from conformkit.reference.encoder.model import initialize
from conformkit.reference.encoder.pretraining import BertForPreTraining
from conformkit.reference.errors import CheckpointError
from conformkit.reference.stochastic_depth import place_stochastic_depth
from conformkit.reference.tokenizers import Tokenizer, tokenizer_from_json
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, config_from
from conformkit.reference.vision.model import VisionTransformer

__all__ = [
    "CLASSES",
    "EXTENT",
    "SPECIAL",
    "Classifier",
    "MaskedModel",
    "build_bert",
    "build_vit",
    "classifier_from",
    "masked_model_from",
]  # fmt: skip

SPECIAL = 4
"""Ids before those of the tokenizer: padding, class, separator, mask."""
STD, WIDTH = 0.02, 768
"""Of the weights of BERT-base as it starts, and its width."""
EXTENT, CLASSES = 8, 10
"""Of the digits: images of 8×8 pixels."""


@dataclass(frozen=True)
class MaskedModel:
    """BERT from a checkpoint, with what turns text into its ids."""

    model: BertForPreTraining
    tokenizer: Tokenizer
    config: TrainingConfig
    step: int


@dataclass(frozen=True)
class Classifier:
    """A vision transformer from a checkpoint."""

    model: VisionTransformer
    config: TrainingConfig
    step: int


def build_bert(config: TrainingConfig, vocab_size: int) -> BertForPreTraining:
    """Return a new BERT of a configuration, on the CPU; `vocab_size` is the tokenizer's.

    The paper's deviation of 0.02 is for a width of 768. A narrower model starts with as much more, so that sums over
    its features are as large as there; with 0.02 a width of 64 learns next to nothing for a long time.
    """
    sizes = config.model
    model = BertForPreTraining(
        vocab_size + SPECIAL, sizes.d_model, sizes.num_heads, sizes.num_layers, sizes.d_ff, sizes.block_size,
        dropout=sizes.dropout, variant=config.variant,
    )  # fmt: skip
    initialize(model, STD * math.sqrt(WIDTH / sizes.d_model))
    place_dropout(model, attention=sizes.attention_dropout)
    place_stochastic_depth(model, sizes.layer_dropout)
    return model


def build_vit(config: TrainingConfig) -> VisionTransformer:
    """Return a new vision transformer of a configuration, on the CPU."""
    sizes = config.model
    model = VisionTransformer(
        EXTENT, sizes.patch_size, 1, CLASSES, sizes.d_model, sizes.num_heads, sizes.num_layers, sizes.d_ff,
        sizes.dropout, variant=config.variant,
    )  # fmt: skip
    place_dropout(model, attention=sizes.attention_dropout)
    place_stochastic_depth(model, sizes.layer_dropout)
    return model


def masked_model_from(saved: Checkpoint, device: str = "cpu") -> MaskedModel:
    """Return the BERT of a checkpoint. Raises CheckpointError."""
    config = _config(saved)
    try:
        tokenizer = tokenizer_from_json(saved.extra["tokenizer"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(str(saved.path), f"of another kind ({error})", "one of `conform train`") from error
    model = build_bert(config, tokenizer.vocab_size)
    saved.restore(model)
    return MaskedModel(model.to(device).eval(), tokenizer, config, saved.step)


def classifier_from(saved: Checkpoint, device: str = "cpu") -> Classifier:
    """Return the vision transformer of a checkpoint. Raises CheckpointError."""
    config = _config(saved)
    model = build_vit(config)
    saved.restore(model)
    return Classifier(model.to(device).eval(), config, saved.step)


def _config(saved: Checkpoint) -> TrainingConfig:
    try:
        return config_from(saved.extra["config"])
    except (TrainingConfigError, KeyError) as error:
        raise CheckpointError(str(saved.path), f"of another kind ({error})", "one of `conform train`") from error
