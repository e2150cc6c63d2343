"""What a model learns from answers, and how probable it finds them.

    x = [prompt, answer, end]        y = [-100 …, answer, end]        z[t - 1] predicts y[t]
    loss = mean of -log softmax(z[t - 1])[y[t]] over all y[t] ≠ -100        log-probability of a row = -sum of the same

z ∈ ℝ^(B×T×V) the logits of a model that has read x (B, T). Ouyang et al. 2022, §3.5; Rafailov et al. 2023, eq. 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conformkit.reference.errors import ShapeError, SizeError

__all__ = ["answer_loss", "collate_answers", "sequence_log_probs"]

IGNORED = -100
Ids = Tensor | Sequence[int]


def collate_answers(pairs: Sequence[tuple[Ids, Ids]], pad_id: int, eos_id: int) -> tuple[Tensor, Tensor]:
    """Join prompts and answers, each followed by an end id, and label what is to be learned.

    Shapes: pairs of (m,) and (n,) → ids and labels (B, max m + n + 1), int64
    Raises: SizeError where there is no pair.
    Source: Ouyang et al. 2022, §3.5. Labels are padded by themselves: the end id may be the pad id.
    """
    if not pairs:
        raise SizeError("the number of pairs", 0, "at least 1")
    texts, labels = [], []
    for prompt, answer in pairs:
        asked = torch.as_tensor(prompt).long()  # (m,)
        learned = torch.cat([torch.as_tensor(answer).long(), torch.tensor([eos_id])])  # (n + 1,)
        texts.append(torch.cat([asked, learned]))
        labels.append(torch.cat([torch.full_like(asked, IGNORED), learned]))
    return (
        pad_sequence(texts, batch_first=True, padding_value=pad_id),
        pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    )


def answer_loss(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Average the surprise at each id of the answers, in nats.

    Shapes: logits (B, T, V), labels and mask (B, T) → ()
    Units:  nats an id; 0 where no id counts, with gradients of 0.
    Raises: ShapeError when labels or mask are not shaped like the logits' positions.
    Source: Ouyang et al. 2022, §3.5. The mean is over all ids of the batch.
    """
    logs, counted = _log_probs(logits, labels, mask)  # both (B, T - 1)
    return -logs.sum() / counted.sum().clamp(min=1)


def sequence_log_probs(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Add up the log-probabilities of the ids of each row's answer.

    Shapes: logits (B, T, V), labels and mask (B, T) → (B,)
    Raises: ShapeError when labels or mask are not shaped like the logits' positions.
    Source: Rafailov et al. 2023, eq. 7.
    """
    return _log_probs(logits, labels, mask)[0].sum(dim=-1)


def _log_probs(logits: Tensor, labels: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return log p of each id from the ids before it (B, T - 1), 0 where it does not count, and which do."""
    for name, given in (("labels", labels), ("mask", mask)):
        if given is not None and given.shape != logits.shape[:-1]:
            raise ShapeError(
                f"the shape of the {name}", tuple(given.shape), f"{tuple(logits.shape[:-1])} as the logits"
            )
    counted = labels != IGNORED if mask is None else mask.bool()  # (B, T)
    counted = counted[:, 1:]
    wanted = labels[:, 1:].long().masked_fill(~counted, 0)  # (B, T - 1)
    z = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))  # (B, T - 1, V)
    logs = z.log_softmax(dim=-1).gather(-1, wanted[..., None])[..., 0]  # (B, T - 1)
    return logs.masked_fill(~counted, 0.0), counted
