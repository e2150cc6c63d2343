"""What usually goes wrong in a loss of logits and targets, and the number that comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from conformkit.conformance.assertions.suppositions import Slips
from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED, token_losses

__all__ = ["of_evaluation", "of_loss"]


def of_loss(logits: Array, targets: Array, *, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Slips:
    """Return what comes of each slip of the mean cross-entropy."""
    counted = targets != ignore_index
    safe = np.where(counted, targets, 0)
    size = logits.shape[-1]
    apart = label_smoothing * size / max(size - 1, 1)

    def losses(z: Array = logits, smoothing: float = label_smoothing) -> Array:
        return np.where(counted, token_losses(z, safe, label_smoothing=smoothing), 0.0)  # (B, T)

    def mean(each: Array) -> float:
        return float(each.sum() / counted.sum())

    def plain() -> Array:
        return losses(smoothing=0.0)

    def evenly() -> Array:
        return token_losses(logits, safe, label_smoothing=1.0)

    def as_targets() -> Array:
        return token_losses(logits, safe, label_smoothing=label_smoothing)

    def probabilities() -> Array:
        return np.asarray(np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))

    made: dict[str, Callable[[], float]] = {
        "if losses are added up": lambda: float(losses().sum()),
        "if ignored targets count in the mean": lambda: float(losses().mean()),
        "if ignored targets count as id 0": lambda: float(as_targets().mean()),
        "if each row has a mean of its own, and those have one": lambda: float(
            (losses().sum(axis=-1) / counted.sum(axis=-1)).mean()
        ),
        "if losses are added up in each row, and averaged over rows": lambda: float(losses().sum() / len(targets)),
        "in bits": lambda: mean(losses()) / math.log(2.0),
        "if it is multiplied by the size of the vocabulary": lambda: mean(losses()) * size,
        "if it is divided by the size of the vocabulary": lambda: mean(losses()) / size,
        "if probabilities are taken for logits": lambda: mean(losses(probabilities())),
        "without smoothing": lambda: mean(plain()),
        "if the target loses its share, and nothing takes it": lambda: (1.0 - label_smoothing) * mean(plain()),
        "if the other ids share it, the target not": lambda: mean(losses(smoothing=apart)),
        "without the target's own share of the smoothing": lambda: mean(plain()) + label_smoothing * mean(
            losses(smoothing=1.0) - plain() * (1.0 + 1.0 / size)
        ),
        "if the smoothing is divided by the other ids' number, and the target has its share": lambda: (
            (1.0 - label_smoothing) * mean(plain()) + apart * mean(losses(smoothing=1.0))
        ),
        "if the smoothing is added up over the vocabulary": lambda: (1.0 - label_smoothing) * mean(plain())
        + label_smoothing * size * mean(losses(smoothing=1.0)),
        "if the target gets the share of the smoothing, and that the rest": lambda: mean(
            losses(smoothing=1.0 - label_smoothing)
        ),
        "if the smoothing is added, and the target keeps all": lambda: mean(
            plain() + label_smoothing * losses(smoothing=1.0)
        ),
        "if ignored targets are smoothed, too": lambda: mean(losses()) + label_smoothing * float(
            (evenly() * ~counted).sum() / counted.sum()
        ),
        "if ignored targets count as any other": lambda: float(
            token_losses(logits, targets, label_smoothing=label_smoothing).mean()
        ),
        "with the opposite sign": lambda: -mean(losses()),
        "with a smoothing of 0.1": lambda: mean(losses(smoothing=0.1)),
        "with the exponential of it": lambda: math.exp(mean(losses())),
    }  # fmt: skip
    return dict(made)


def of_evaluation(logits: Callable[[Array], Array], batches: Sequence[tuple[Array, Array]]) -> Slips:
    """Return what comes of each slip of the mean loss over batches (x, y) of a model with these logits."""

    def losses() -> list[Array]:
        return [token_losses(logits(x), y) for x, y in batches]

    def mean(parts: Sequence[Array]) -> float:
        return float(np.concatenate([part.ravel() for part in parts]).mean())

    made: dict[str, Callable[[], float]] = {
        "if batches have means of their own, and those have one": lambda: float(np.mean([b.mean() for b in losses()])),
        "if batches are weighted by their rows": lambda: float(
            np.average([b.mean() for b in losses()], weights=[len(b) for b in losses()])
        ),
        "if perplexities of batches are averaged": lambda: math.log(np.mean([math.exp(b.mean()) for b in losses()])),
        "if the means of batches are added up": lambda: float(np.sum([b.mean() for b in losses()])),
        "if all losses are added up": lambda: float(np.sum([b.sum() for b in losses()])),
        "if the first batch alone counts": lambda: float(losses()[0].mean()),
        "if the last batch alone counts": lambda: float(losses()[-1].mean()),
        "if the last batch's losses count, and its targets don't": lambda: float(
            sum(b.sum() for b in losses()) / sum(b.size for b in losses()[:-1])
        ),
        "if each batch is taken to be as large as the first": lambda: float(
            sum(b.sum() for b in losses()) / (len(batches) * losses()[0].size)
        ),
        "without the last batch": lambda: mean(losses()[:-1]),
        "with the exponential of it": lambda: math.exp(mean(losses())),
        "with the mean of the batches' exponentials": lambda: float(np.mean([math.exp(b.mean()) for b in losses()])),
        "in bits": lambda: mean(losses()) / math.log(2.0),
        "if targets are shifted once more": lambda: mean(
            [token_losses(logits(x)[:, :-1], y[:, 1:]) for x, y in batches]
        ),
        "if targets are what is read": lambda: mean([token_losses(logits(x), x) for x, _ in batches]),
        "if the last place of each row alone counts": lambda: mean([b[:, -1] for b in losses()]),
        "without the last place of each row": lambda: mean([b[:, :-1] for b in losses()]),
        "without the first place of each row": lambda: mean([b[:, 1:] for b in losses()]),
        "if it is smoothed by 0.1": lambda: mean([token_losses(logits(x), y, label_smoothing=0.1) for x, y in batches]),
    }
    return dict(made)
