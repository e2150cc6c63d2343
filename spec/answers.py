"""Fine-tuning on answers: which ids a model learns from, and how probable a whole answer is. Protocols and oracles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED, log_softmax
from conformkit.spec.protocols import ArrayT, ArrayT_contra, Named

__all__ = [
    "AnswerLoss", "CollateAnswers", "SequenceLogProbs", "answer_gradient", "answer_losses", "answer_row",
    "sequence_log_probs",
]  # fmt: skip


@runtime_checkable
class CollateAnswers(Named, Protocol[ArrayT]):
    """Join prompts and answers to a batch, each answer followed by an end id, and label what is to be learned.

    Labels are the ids of the answer and its end at their own places, and -100 in the prompt and in the padding.
    Shapes: pairs of ids (m,) and (n,) → ids and labels (B, max m + n + 1)
    Source: transformers, `DataCollatorForSeq2Seq`; Ouyang et al. 2022, §3.5.
    """

    def __call__(self, pairs: Sequence[tuple[ArrayT, ArrayT]], pad_id: int, eos_id: int) -> tuple[ArrayT, ArrayT]: ...


@runtime_checkable
class AnswerLoss(Named, Protocol[ArrayT_contra]):
    """Average the surprise at each id of the answers, in nats; it is predicted from the ids before it.

    Labels are the ids, -100 outside of answers. With `mask`, labels are all ids, and 1 in the mask marks the answers.
    Shapes: logits (B, T, V) of a model that has read the ids, labels and mask (B, T) → one number
    Source: Ouyang et al. 2022, §3.5; Radford et al. 2018, eq. 1.
    """

    def __call__(
        self, logits: ArrayT_contra, labels: ArrayT_contra, mask: ArrayT_contra | None = None
    ) -> SupportsFloat: ...


@runtime_checkable
class SequenceLogProbs(Named, Protocol[ArrayT]):
    """Return the log-probability of each row's answer: the sum over its ids, each predicted from the ids before it.

    Shapes: logits (B, T, V), labels and mask (B, T), as in `answer_loss` → (B,)
    Source: Rafailov et al. 2023, eq. 7.
    """

    def __call__(self, logits: ArrayT, labels: ArrayT, mask: ArrayT | None = None) -> ArrayT: ...


def answer_row(prompt: Array, answer: Array, eos_id: int) -> tuple[Array, Array]:
    """Return the ids (n,) of one text and their labels (n,)."""
    learned = np.append(answer, eos_id)
    return np.concatenate([prompt, learned]), np.concatenate([np.full(len(prompt), IGNORED), learned])


def sequence_log_probs(logits: Array, labels: Array) -> Array:
    """Return Σ log p(label | the ids before it) over each row's labels (B,)."""
    return np.asarray(-answer_losses(logits, labels).sum(axis=-1))


def answer_losses(logits: Array, labels: Array) -> Array:
    """Return the loss (B, T) of each label, in nats, 0 where nothing is learned. Nothing predicts a row's first id."""
    log_p, counted = log_softmax(logits[:, :-1]), labels[:, 1:] != IGNORED
    own = np.take_along_axis(log_p, np.where(counted, labels[:, 1:], 0)[..., None], axis=-1)[..., 0]
    return np.pad(np.where(counted, -own, 0.0), ((0, 0), (1, 0)))


def answer_gradient(logits: Array, labels: Array) -> Array:
    """Return the derivative (B, T, V) of the sum of these losses with respect to the logits."""
    counted = labels[:, 1:] != IGNORED
    wanted = np.eye(logits.shape[-1])[np.where(counted, labels[:, 1:], 0)]
    slopes = (np.exp(log_softmax(logits[:, :-1])) - wanted) * counted[..., None]
    return np.pad(slopes, ((0, 0), (0, 1), (0, 0)))
