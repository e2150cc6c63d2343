"""What may change the logits before an id is drawn: penalties, n-grams that are not repeated, min-p, typical p.

    z_v ← z_v / θ if z_v > 0, else z_v · θ        for every v in the text                  (repetition)
    z_v ← z_v - α_p [c_v > 0] - α_f c_v           c_v: how often v was drawn               (presence, frequency)
    z_v ← -∞                                      where v would end an n-gram of the text  (no repeated n-grams)
    z_v ← -∞                                      where p_v < m · max p                    (min-p)
    z_v ← -∞                                      outside the smallest set of ids by |-ln p_v - H|, H = -Σ p ln p,
                                                  whose probability reaches τ              (typical)

Keskar et al. 2019, §4.1; OpenAI, API reference; Paulus et al. 2018, §2.5; Nguyen et al. 2024, §3; Meister et al. 2023,
§4. The last two look at the probabilities at the requested temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError
from conformkit.reference.repetition import penalized
from conformkit.reference.sizes import check_at_least

__all__ = ["NONE", "Penalties", "counted", "min_p_filtered", "typical_filtered", "without_repeats"]


@dataclass(frozen=True)
class Penalties:
    """Options of one text; the defaults change nothing."""

    min_p: float | None = None
    typical_p: float | None = None
    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    no_repeat_ngram_size: int | None = None

    def __post_init__(self) -> None:
        """Refuse options out of range: SizeError."""
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise SizeError("min_p", self.min_p, "from 0 to 1")
        if self.typical_p is not None and not 0 < self.typical_p <= 1:
            raise SizeError("typical_p", self.typical_p, "above 0 and at most 1")
        if not 1.0 <= self.repetition < math.inf:
            raise SizeError("repetition_penalty", self.repetition, "at least 1 and finite")
        for name, value in (("presence_penalty", self.presence), ("frequency_penalty", self.frequency)):
            if not math.isfinite(value):
                raise SizeError(name, value, "finite")
        if self.no_repeat_ngram_size is not None:
            check_at_least(1, no_repeat_ngram_size=self.no_repeat_ngram_size)

    def applied(self, logits: Tensor, ids: Tensor, prompt: int, temperature: float) -> Tensor:
        """Change logits (B, V) after ids (B, T), the first `prompt` of which are the prompt."""
        if self.repetition != 1.0:
            logits = penalized(logits, ids, self.repetition)  # (B, V)
        if self.presence or self.frequency:
            counts = counted(ids[:, prompt:], logits)  # (B, V)
            logits = logits - self.presence * (counts > 0) - self.frequency * counts  # (B, V)
        if self.no_repeat_ngram_size is not None:
            logits = without_repeats(logits, ids, self.no_repeat_ngram_size)  # (B, V)
        if self.min_p is not None and temperature > 0:
            logits = min_p_filtered(logits, temperature, self.min_p)  # (B, V)
        if self.typical_p is not None and temperature > 0:
            logits = typical_filtered(logits, temperature, self.typical_p)  # (B, V)
        return logits


NONE = Penalties()


def counted(ids: Tensor, logits: Tensor) -> Tensor:
    """Count each id of the vocabulary in each row: ids (B, n), logits (B, V) → (B, V)."""
    return torch.zeros_like(logits).scatter_add(-1, ids.long(), torch.ones_like(ids, dtype=logits.dtype))


def without_repeats(logits: Tensor, ids: Tensor, size: int) -> Tensor:
    """Exclude the ids that would end an n-gram which a row holds already.

    Shapes: logits (B, V), ids (B, T) → (B, V); size is n, at least 1
    Source: Paulus et al. 2018, §2.5, with n = 3.
    """
    if ids.shape[1] < size:
        return logits
    grams = ids.unfold(1, size, 1)  # (B, T - n + 1, n)
    ending = ids[:, None, ids.shape[1] - size + 1 :]  # (B, 1, n - 1)
    again = (grams[..., :-1] == ending).all(dim=-1)  # (B, T - n + 1)
    times = torch.zeros_like(logits).scatter_add(-1, grams[..., -1].long(), again.to(logits.dtype))  # (B, V)
    return logits.masked_fill(times > 0, -math.inf)


def min_p_filtered(logits: Tensor, temperature: float, share: float) -> Tensor:
    """Exclude ids with less than a share of the highest probability: (B, V) → (B, V)."""
    probabilities = torch.softmax(logits / temperature, dim=-1)  # (B, V)
    least = share * probabilities.amax(dim=-1, keepdim=True)  # (B, 1)
    return logits.masked_fill(probabilities < least, -math.inf)


def typical_filtered(logits: Tensor, temperature: float, share: float) -> Tensor:
    """Keep the smallest set of the most typical ids whose probability reaches a share: (B, V) → (B, V)."""
    probabilities = torch.softmax(logits / temperature, dim=-1)  # (B, V)
    surprise = -torch.log(probabilities.clamp_min(torch.finfo(logits.dtype).tiny))  # (B, V)
    entropy = (probabilities * surprise).sum(dim=-1, keepdim=True)  # (B, 1)
    distance = (surprise - entropy).abs()  # (B, V)
    order = distance.argsort(dim=-1, stable=True)  # (B, V); order[b, 0] is the most typical id
    ranked = probabilities.gather(-1, order)  # (B, V)
    outside = ranked.cumsum(dim=-1) - ranked >= share  # (B, V)
    return logits.masked_fill(torch.zeros_like(outside).scatter(-1, order, outside), -math.inf)
