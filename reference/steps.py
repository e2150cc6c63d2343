"""One update of a model, and its loss on data that it does not learn from.

    θ ← optimizer(θ, clip(∇ loss(θ)))        loss the mean over all targets that count, in all micro-batches

nanoGPT, `train.py`. Gradients of micro-batches are summed, each weighted by its share of the targets, so that k of them
make the same update as one large batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from conformkit.reference.errors import SizeError
from conformkit.reference.generation import _evaluating
from conformkit.reference.loss import cross_entropy
from conformkit.reference.optimization import clip_grad_norm

__all__ = ["IGNORED", "Optimizer", "accumulate", "evaluate", "train_step"]

IGNORED = -100
"""The target that does not count."""

Batch = tuple[Any, Tensor]
"""What a model is called with, such as ids (B, T), and the targets (B, T)."""


class Optimizer(Protocol):
    """What an update needs: `AdamW` here, or any of `torch.optim`."""

    def step(self) -> object:
        """Update the parameters by their gradients."""

    def zero_grad(self) -> None:
        """Forget the gradients."""


def train_step(model: nn.Module, optimizer: Optimizer, x: Tensor, y: Tensor, max_norm: float | None = None) -> float:
    """Update the model by one batch, and return the loss that it had before.

    Shapes: x, y (B, T) → a number, in nats a token
    Raises: whatever the model refuses; SizeError for a max_norm that is not above 0.
    Source: nanoGPT, `train.py`: zero the gradients, forward, loss, backward, clip, update.
    """
    model.train()
    optimizer.zero_grad()
    loss = accumulate(model, [(x, y)])
    if max_norm is not None:
        clip_grad_norm(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def accumulate(
    model: nn.Module,
    batches: Sequence[Batch],
    criterion: Callable[[Tensor, Tensor], Tensor] = cross_entropy,
    scale: Tensor | float = 1.0,
) -> Tensor:
    """Add to the gradients that of `scale` times the mean loss over several batches, and return that loss unscaled.

    Shapes: x, y (B, T) each; B and T may differ → ()
    Units:  nats a token, averaged over the targets of all batches, not over batches.
    Raises: SizeError where there is no batch; whatever the model refuses.
    """
    if not batches:
        raise SizeError("the number of batches", 0, "at least 1")
    counts = [(y != IGNORED).sum() for _, y in batches]
    everything = torch.stack(counts).sum().clamp(min=1)
    total = torch.zeros((), device=everything.device)
    for (x, y), count in zip(batches, counts, strict=True):
        part = criterion(model(x), y) * count / everything
        torch.autograd.backward(part * scale)
        total = total + part.detach()
    return total


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[Batch]) -> float:
    """Average the loss over all targets of all batches, without dropout, smoothing or gradients.

    Shapes: x, y (B, T) each; B and T may differ → a number, in nats a token
    Raises: SizeError where no target counts; whatever the model refuses.
    Source: nanoGPT, `train.py`, `estimate_loss`. Every module's mode is restored afterwards.
    """
    total, count = 0.0, 0
    with _evaluating(model):
        for x, y in batches:
            tokens = int((y != IGNORED).sum())
            total += cross_entropy(model(x), y, ignore_index=IGNORED).item() * tokens
            count += tokens
    if count == 0:
        raise SizeError("the number of targets that count", 0, "at least 1")
    return total / count
