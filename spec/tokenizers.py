"""From text to ids and back: Protocols of tokenizers, and an oracle for merges."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from conformkit.spec.protocols import Built_co

__all__ = [
    "BPETokenizer", "BPETokenizerConstructor", "CharTokenizer", "CharTokenizerConstructor", "apply_merges",
    "learn_merges",
]  # fmt: skip


@runtime_checkable
class Tokenizer(Protocol):
    """Both kinds of tokenizers: ids from 0 to vocab_size - 1, decoded without loss."""

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        ...

    def encode(self, text: str) -> Sequence[int]:
        """Return the ids of a text, in order."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""
        ...


@runtime_checkable
class CharTokenizer(Tokenizer, Protocol):
    """Number the distinct characters of a text. Source: nanoGPT, `data/shakespeare_char/prepare.py`."""


@runtime_checkable
class CharTokenizerConstructor(Protocol[Built_co]):
    """The class CharTokenizer, or a function that builds one."""

    def __call__(self, text: str) -> Built_co: ...


@runtime_checkable
class BPETokenizer(Tokenizer, Protocol):
    """Learn merges of neighbouring bytes, the most frequent pair first, until the vocabulary is full.

    Source: Sennrich et al. 2016.
    """


@runtime_checkable
class BPETokenizerConstructor(Protocol[Built_co]):
    """The class BPETokenizer, or a function that builds one."""

    def __call__(self, text: str, vocab_size: int = 500, min_frequency: int = 2) -> Built_co: ...


Pair = tuple[str, str]


def learn_merges(text: str, count: int, min_frequency: int = 2) -> list[Pair]:
    """Return up to `count` merges of one word, each of the most frequent pair; refuse texts with a tie."""
    tokens, merges = list(text), list[Pair]()
    while len(merges) < count:
        ranked = Counter(itertools.pairwise(tokens)).most_common(2)
        if not ranked or ranked[0][1] < min_frequency:
            break
        if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
            raise ValueError(f"{ranked[0][0]} and {ranked[1][0]} are equally frequent")
        merges.append(ranked[0][0])
        tokens = _merged(tokens, ranked[0][0])
    return merges


def apply_merges(text: str, merges: Sequence[Pair]) -> list[str]:
    """Return the tokens of a word, with merges applied in the order in which they were learned."""
    tokens = list(text)
    for pair in merges:
        tokens = _merged(tokens, pair)
    return tokens


def _merged(tokens: Sequence[str], pair: Pair) -> list[str]:
    found: list[str] = []
    for token in tokens:
        if found and (found[-1], token) == pair:
            found[-1] += token
        else:
            found.append(token)
    return found
