"""Byte-pair encoding over characters with a sign for the end of a word, and a batch iterator over tokenized text.

White space between words is not kept: any run of it decodes to one space. The text must not contain the sign itself.
"""

from collections import Counter

import numpy as np

from .network import FeedForward, MultiHeadAttention, PositionalEncoding, TinyTransformerLM, TransformerBlock

END = "</w>"


class SubwordTokenizer:
    UNK = "<unk>"

    def __init__(self, merges, symbols):
        self.merges = list(merges)
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.symbols = list(symbols)
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols)}

    @classmethod
    def learn(cls, text, num_merges):
        words = Counter(text.split())
        split = {word: (*word[:-1], word[-1] + END) for word in words}
        alphabet = sorted({symbol for symbols in split.values() for symbol in symbols})
        merges, merged = [], []
        for _ in range(num_merges):
            pairs = Counter()
            for word, symbols in split.items():
                for pair in zip(symbols, symbols[1:]):
                    pairs[pair] += words[word]
            if not pairs:
                break
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))
            if pairs[best] < 2:
                break
            merges.append(best)
            merged.append("".join(best))
            split = {word: cls.apply(symbols, best) for word, symbols in split.items()}
        return cls(merges, [cls.UNK, *alphabet, *dict.fromkeys(m for m in merged if m not in alphabet)])

    @staticmethod
    def apply(symbols, pair):
        out = []
        for symbol in symbols:
            if out and (out[-1], symbol) == pair and not out[-1].endswith(END):
                out[-1] = out[-1] + symbol
                # a symbol just made cannot take part in this merge again
                out.append(None)
            else:
                out.append(symbol)
        return tuple(symbol for symbol in out if symbol is not None)

    @property
    def vocab_size(self):
        return len(self.symbols)

    def tokenize(self, word):
        symbols = (*word[:-1], word[-1] + END)
        while len(symbols) > 1:
            pairs = [pair for pair in zip(symbols, symbols[1:]) if pair in self.ranks]
            if not pairs:
                break
            symbols = self.apply(symbols, min(pairs, key=self.ranks.__getitem__))
        return list(symbols)

    def encode(self, text):
        unknown = self.ids[self.UNK]
        return [self.ids.get(symbol, unknown) for word in text.split() for symbol in self.tokenize(word)]

    def decode(self, ids):
        return "".join(self.symbols[int(i)] for i in ids).replace(END, " ").rstrip(" ")


def batches(ids, batch_size, block_size, seed=0):
    """Each window of a text that is cut without overlap once, in random order: pairs x, y of arrays (b, T), y one ahead."""
    ids = np.asarray(ids, dtype=np.int64)
    count = (len(ids) - 1) // block_size
    starts = np.random.default_rng(seed).permutation(count) * block_size
    for i in range(0, count, batch_size):
        rows = starts[i : i + batch_size, None] + np.arange(block_size)
        yield ids[rows], ids[rows + 1]


def unigram_perplexity(train_ids, test_ids, vocab_size, smoothing=1.0):
    """What a model that knows only frequencies gets, with add-`smoothing` counts: a baseline."""
    counts = np.bincount(np.asarray(train_ids), minlength=vocab_size) + smoothing
    log_p = np.log(counts / counts.sum())
    return float(np.exp(-log_p[np.asarray(test_ids)].mean()))


def linear_warmup(step, base, warmup):
    return base * min(1.0, step / warmup) if warmup > 0 else base
