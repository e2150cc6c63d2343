"""Other conventions: steps counted from 0, curves as pandas returns them, byte pairs of characters, as subword-nmt has them."""

from collections import Counter
from itertools import pairwise

import numpy as np


def inverse_sqrt_schedule(step, d_model, warmup):
    step = step + 1
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def rolling_mean(values, window):
    """As many means as values; the first ones, of incomplete windows, are NaN."""
    means = np.full(len(values), np.nan)
    means[window - 1 :] = np.convolve(values, np.ones(window) / window, mode="valid")
    return means


def exponential_moving_average(values, alpha):
    """As `Series.ewm(alpha=alpha).mean()`: the start is corrected."""
    total, weight, found = 0.0, 0.0, []
    for value in values:
        total, weight = value + (1 - alpha) * total, 1 + (1 - alpha) * weight
        found.append(total / weight)
    return np.array(found)


class BPETokenizer:
    """Merges within words, over characters and a mark of their end; what it does not know is `<unk>`."""

    def __init__(self, text, vocab_size=400, min_frequency=2):
        words = Counter(text.split())
        pieces = {word: [*word, "</w>"] for word in words}
        self.symbols = ["<unk>", "</w>", *sorted(set("".join(words)))]
        self.merges = {}
        while len(self.symbols) < vocab_size:
            pairs = Counter()
            for word, times in words.items():
                for pair in pairwise(pieces[word]):
                    pairs[pair] += times
            if not pairs or max(pairs.values()) < min_frequency:
                break
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))
            self.merges[best] = len(self.merges)
            if best[0] + best[1] not in self.symbols:
                self.symbols.append(best[0] + best[1])
            pieces = {word: self._join(parts, best) for word, parts in pieces.items()}
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.vocab_size = len(self.symbols)

    @staticmethod
    def _join(parts, pair):
        found, rest = [], list(parts)
        while rest:
            if tuple(rest[:2]) == pair:
                found.append(rest[0] + rest[1])
                rest = rest[2:]
            else:
                found.append(rest.pop(0))
        return found

    def encode(self, text):
        found = []
        for word in text.split():
            parts = [c if c in self.ids else "<unk>" for c in word] + ["</w>"]
            while known := [pair for pair in pairwise(parts) if pair in self.merges]:
                parts = self._join(parts, min(known, key=self.merges.__getitem__))
            found += [self.ids[part] for part in parts]
        return found

    def decode(self, ids):
        return "".join(self.symbols[int(one)] for one in ids).replace("</w>", " ").rstrip(" ")
