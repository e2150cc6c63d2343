"""Byte-level byte-pair encoding in plain Python, a stream of documents, and a sampler of windows."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import torch

from .lm import FeedForward, MultiHeadAttention, PositionalEncoding, TinyTransformerLM, TransformerBlock

# A word takes the space before it; runs of other white space stay together.
SPLIT = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\w\s]+| ?_+|\s+(?!\S)|\s+")


class BPETokenizer:
    def __init__(self, text: str = "", vocab_size: int = 500, min_frequency: int = 2):
        if vocab_size < 256:
            raise ValueError("vocab_size below 256 leaves bytes without an id")
        self.merges: dict[tuple[int, int], int] = {}
        self.vocab: dict[int, bytes] = {i: bytes((i,)) for i in range(256)}
        self._train(text, vocab_size, min_frequency)

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    def _train(self, text: str, vocab_size: int, min_frequency: int) -> None:
        words = [[list(w.encode("utf-8")), n] for w, n in Counter(SPLIT.findall(text)).items()]
        counts: Counter = Counter()
        where: dict[tuple[int, int], set[int]] = defaultdict(set)
        for i, (ids, n) in enumerate(words):
            for pair in zip(ids, ids[1:]):
                counts[pair] += n
                where[pair].add(i)
        for new_id in range(256, vocab_size):
            if not counts:
                break
            best, frequency = max(counts.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]))
            if frequency < min_frequency:
                break
            self.merges[best] = new_id
            self.vocab[new_id] = self.vocab[best[0]] + self.vocab[best[1]]
            for i in list(where[best]):
                ids, n = words[i]
                for pair in zip(ids, ids[1:]):
                    counts[pair] -= n
                    if counts[pair] <= 0:
                        del counts[pair]
                    where[pair].discard(i)
                words[i][0] = ids = self._merge(ids, best, new_id)
                for pair in zip(ids, ids[1:]):
                    counts[pair] += n
                    where[pair].add(i)

    @staticmethod
    def _merge(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
        out, i = [], 0
        while i < len(ids):
            if ids[i] == pair[0] and i + 1 < len(ids) and ids[i + 1] == pair[1]:
                out.append(new_id)
                i += 2
            else:
                out.append(ids[i])
                i += 1
        return out

    def _encode_word(self, word: str) -> list[int]:
        ids = list(word.encode("utf-8"))
        while len(ids) >= 2:
            ranked = [(self.merges[p], p) for p in zip(ids, ids[1:]) if p in self.merges]
            if not ranked:
                break
            new_id, pair = min(ranked)
            ids = self._merge(ids, pair, new_id)
        return ids

    def encode(self, text: str) -> list[int]:
        return [i for word in SPLIT.findall(text) for i in self._encode_word(word)]

    def decode(self, ids) -> str:
        return b"".join(self.vocab[int(i)] for i in ids).decode("utf-8", errors="replace")

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as f:
            json.dump([[a, b] for a, b in self.merges], f)

    @classmethod
    def load(cls, path: str) -> BPETokenizer:
        made = cls()
        with open(path, encoding="utf-8") as f:
            for a, b in json.load(f):
                new_id = len(made.vocab)
                made.merges[a, b] = new_id
                made.vocab[new_id] = made.vocab[a] + made.vocab[b]
        return made


def train_val_split(ids, fraction=0.9):
    n = int(fraction * len(ids))
    return ids[:n], ids[n:]


def sliding_windows(ids, block_size):
    """Every window of block_size ids, and the same one id later."""
    ids = torch.as_tensor(ids, dtype=torch.long)
    if len(ids) <= block_size:
        raise ValueError("fewer ids than a window and its successor")
    windows = ids.unfold(0, block_size + 1, 1)
    return windows[:, :-1].clone(), windows[:, 1:].clone()


def get_batch(ids, batch_size, block_size):
    ids = torch.as_tensor(ids, dtype=torch.long)
    if len(ids) <= block_size:
        raise ValueError("fewer ids than a window and its successor")
    starts = torch.randint(0, len(ids) - block_size, (batch_size,)).tolist()
    x = torch.stack([ids[s : s + block_size] for s in starts])
    y = torch.stack([ids[s + 1 : s + 1 + block_size] for s in starts])
    return x, y


def compression(tokenizer: BPETokenizer, text: str) -> float:
    """Characters per token."""
    return len(text) / max(len(tokenizer.encode(text)), 1)
