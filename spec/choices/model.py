"""Whole models: embeddings, heads, and what is read from an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformkit.spec.choices.record import WHOLE_MODELS, Rarity, choice

__all__ = ["OfModel"]


@dataclass(frozen=True)
class OfModel:
    """Whole models: embeddings, heads, and what is read from an encoder."""

    embedding_scale: bool = choice(
        False,
        words={True: "embeddings times √d_model", False: "unscaled embeddings"},
        tried={"model": 9},
    )
    """Multiply embeddings by √d_model before positions are added."""
    embedding_norm: bool = choice(
        False,
        words={True: "a norm on the embeddings", False: "no norm on the embeddings"},
        tried={"model": 10},
    )
    """A norm on the embeddings, after positions are added."""
    final_norm: bool = choice(
        True,
        words={True: "a norm after the last block", False: "no norm after the last block"},
        tried={"model": 8},
    )
    tied: bool = choice(
        False,
        words={True: "a head that is the embedding matrix", False: "a separate head"},
        tried={"model": 6},
    )
    """The head shares the embedding matrix; in an encoder-decoder, the target's."""
    shared_embeddings: bool = choice(
        False,
        words={
            True: "one embedding matrix for source and target",
            False: "separate embedding matrices for source and target",
        },
        tried={"model": 12},
    )
    """Source and target of an encoder-decoder share one embedding matrix."""
    shared_positions: bool = choice(
        False,
        words={
            True: "one table of positions for source and target",
            False: "separate tables of positions for source and target",
        },
        tried={"positions": 5},
        idle=lambda v, _: v.positions != "learned",
    )
    """Source and target of an encoder-decoder share one learned table of positions; unused if none is learned."""
    tied_scale: bool = choice(
        False,
        words={True: "a tied head behind a division by √d_model", False: "a tied head that reads the stream as it is"},
        tried={"relative": 5},
        rarity=Rarity.READ,
        beyond=("Transformer",),
        needs=("tied", "tied head", "tied = true"),
        idle=lambda v, part: not v.tied or part not in WHOLE_MODELS,
    )
    """What a tied head reads is divided by √d_model, as in T5."""
    head_bias: bool = choice(
        True,
        words={True: "a head with a bias", False: "a head without a bias"},
        tried={"model": 7},
        free=True,
    )
    logit_cap: float = choice(
        0.0,
        words={0.0: "logits without a cap"},
        in_use=(30.0, 15.0, 50.0, 20.0, 10.0, 5.0),
        tried={"model": 13},
        rarity=Rarity.RARE,
    )
    """Logits z become cap · tanh(z / cap); 0: they stay."""
    log_probabilities: bool = choice(
        False,
        words={True: "log-probabilities", False: "logits"},
        tried={"model": 11},
    )
    """A model returns the log-softmax of its logits: the same predictions, for a loss without a softmax of its own."""
    segments: bool = choice(
        True,
        words={True: "embeddings of segments", False: "no embeddings of segments"},
        tried={"model": 1},
    )
    """An encoder's embeddings add a learned row for the segment of each position, as BERT's do."""
    pooler: bool = choice(
        True,
        words={True: "a pooler", False: "no pooler"},
        tried={"model": 3},
        free=True,
    )
    """A BERT has a pooler: a linear map of the first position, then tanh; no head need read it.

    Without one, a head for the next sentence reads the first position itself.
    """
    head_transform: bool = choice(
        True,
        words={True: "a masked-language head that transforms first", False: "a masked-language head of one matrix"},
        tried={"model": 4},
    )
    """Before the masked-language head's matrix: a linear map, the activation, a norm."""
    next_sentence_head: bool = choice(
        True,
        words={True: "a head for the next sentence", False: "no head for the next sentence"},
        tried={"model": 2},
        free=True,
    )
    """A BERT with its pretraining heads has a pooler and the head for the next sentence, not only the one for ids."""
    pooling: Literal["class", "mean"] = choice(
        "class",
        words={"class": "a class token that is classified", "mean": "the mean of all patches"},
        tried={"model": 5},
    )
    """What a vision transformer classifies: the class token, or the mean of all patches, then without that token."""
