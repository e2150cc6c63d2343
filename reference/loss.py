"""What a language model is judged by.

    ℓ = -log softmax(z)[y] = log Σ_v exp z_v - z_y        loss = mean of ℓ over the targets that count
    perplexity = exp(loss)        bits per character = loss / ln 2 · (tokens per character)

z ∈ ℝ^V the logits at one position, y ∈ {0, …, V-1} the id that follows. Radford et al. 2018, eq. 1. With label
smoothing ε the target is 1 - ε + ε/V for y and ε/V for every other id (Szegedy et al. 2016, §7; Vaswani et al. 2017,
§5.4).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError, SizeError, TokenError

__all__ = ["bits_per_character", "cross_entropy", "perplexity"]


def cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """Average the surprise at each target, in nats, over the targets that are not ignored.

    Shapes: logits (…, V), targets (…), such as (B, T, V) and (B, T), or (N, V) and (N,) → ()
    Units:  nats a token; 0 where no target counts, with gradients of 0.
    Raises: ShapeError when targets are not shaped like the logits' positions; TokenError for a target outside the
            vocabulary; SizeError for a smoothing that is no probability.
    Source: Radford et al. 2018, eq. 1. Differs: the mean over the targets, where the paper has their sum.
    """
    _check(logits, targets, ignore_index, label_smoothing)
    counted = targets != ignore_index  # (…)
    wanted = targets.long().masked_fill(~counted, 0)  # (…), any id will do where it does not count
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))  # (…, V)
    score = z.gather(-1, wanted[..., None])[..., 0]  # (…), z_y
    if label_smoothing > 0:
        score = (1 - label_smoothing) * score + label_smoothing * z.mean(dim=-1)
    surprise = torch.logsumexp(z, dim=-1) - score  # (…)
    return surprise.masked_fill(~counted, 0.0).sum() / counted.sum().clamp(min=1)


def perplexity(loss: Tensor | float) -> Tensor:
    """Return the number of equally probable ids that would surprise as much: exp(loss).

    Shapes: () → ()
    Units:  loss in nats a token, averaged over tokens, not over batches.
    """
    return _number(loss).exp()


def bits_per_character(loss: Tensor | float, tokens_per_character: float = 1.0) -> Tensor:
    """Return what a character costs in bits; a token of a subword vocabulary is several characters.

    Shapes: () → ()
    Units:  loss in nats a token; tokens_per_character = tokens / characters of the same text, 1 for characters.
    """
    return _number(loss) / math.log(2.0) * tokens_per_character


def _number(loss: Tensor | float) -> Tensor:
    return loss if isinstance(loss, Tensor) else torch.tensor(loss, dtype=torch.float64)


def _check(logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float) -> None:
    if logits.shape[:-1] != targets.shape:
        raise ShapeError("the shape of the targets", tuple(targets.shape), f"{tuple(logits.shape[:-1])} as the logits")
    if not 0.0 <= label_smoothing <= 1.0:
        raise SizeError("label_smoothing", label_smoothing, "between 0 and 1")
    vocabulary = logits.shape[-1]
    outside = targets[(targets != ignore_index) & ((targets < 0) | (targets >= vocabulary))]  # (n,)
    if outside.numel():
        raise TokenError("a target", int(outside[0]), f"one from 0 to V - 1 = {vocabulary - 1}, or {ignore_index}")
