"""Penalties: the logits of ids that a text holds already are made lower, and n-grams are not repeated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Penalties", "occurrences", "repeating"]


@dataclass(frozen=True, slots=True)
class Penalties:
    """What `generate` was asked for; the values here change nothing."""

    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    no_repeat_ngram_size: int = 0

    def applied(self, logits: Array, texts: Array, prompt: int, variant: Variant = CANONICAL) -> Array:
        """Return logits (N, V) after texts (N, T) whose first `prompt` ids are the prompt; -∞ for what is excluded.

        z / θ if z > 0, else z θ, for each id of the text; then z - α_p [c > 0] - α_f c, c how often the id was drawn.
        Source: Keskar et al. 2019, §4.1; OpenAI, API reference; Paulus et al. 2018, §2.5.
        """
        size = logits.shape[-1]
        met = occurrences(texts[:, prompt if variant.repetition_counts == "new" else 0 :], size) > 0
        theta = self.repetition_penalty
        found = np.where(met, np.where(logits > 0.0, logits / theta, logits * theta), logits)
        counts = occurrences(texts[:, prompt if variant.penalty_counts == "new" else 0 :], size)
        found = found - self.presence_penalty * (counts > 0) - self.frequency_penalty * counts
        if not self.no_repeat_ngram_size:
            return np.asarray(found)
        return np.where(repeating(texts, size, self.no_repeat_ngram_size), -np.inf, found)


def occurrences(texts: Array, vocab_size: int) -> Array:
    """Return how often each id occurs in each text: (N, T) → (N, V)."""
    counts = np.zeros((len(texts), vocab_size), np.int64)
    np.add.at(counts, (np.arange(len(texts))[:, None], texts), 1)
    return counts


def repeating(texts: Array, vocab_size: int, size: int) -> Array:
    """Return which next ids (N, V) would end an n-gram of `size` ids that a text (N, T) holds already."""
    found = np.zeros((len(texts), vocab_size), np.bool_)
    ending = texts[:, texts.shape[1] - size + 1 :]  # (N, size - 1), the ids before the next one
    for start in range(texts.shape[1] - size + 1):
        same = (texts[:, start : start + size - 1] == ending).all(axis=1)
        found[same, texts[same, start + size - 1]] = True
    return found
