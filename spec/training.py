"""Sources of text whose entropy is known exactly, so that good, bad and impossible losses can be distinguished.

A source gives ids and, for each of them, its surprise: -ln of the probability that the source gives it after the ids
before. No model that reads from left to right can have a lower loss on average; and for a model that has
not seen the texts, the probability that its total loss is lower by c nats is at most e^-c
(Ville 1939: the ratio of its probability to the source's has mean 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED

__all__ = [
    "ALTERNATION", "FIRST_AGAIN", "RECALL", "THREADS", "TWO_THREADS", "UNIFORM", "Alternation", "Copies",
    "FirstAgain", "Markov", "Memory", "Recall", "TextSource", "Texts", "Threads", "Uniform",
]  # fmt: skip

Random = Any
"""`numpy.random.Generator`."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Inputs and targets (B, T), and the surprise of each target, which is 0 where the target is ignored."""

    x: Array
    y: Array
    surprise: Array


class TextSource(Protocol):
    """Draws texts over `size` ids."""

    @property
    def size(self) -> int:
        """The number of ids."""

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""


def _texts(ids: Array, surprise: Array) -> Texts:
    """Cut ids (B, T + 1) and their surprise into inputs and targets."""
    return Texts(ids[:, :-1].copy(), ids[:, 1:].copy(), surprise[:, 1:])


@dataclass(frozen=True, slots=True)
class Uniform:
    """Independent ids, all equally probable: nothing can be learned, and no loss is below ln V on average."""

    size: int = 8

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        ids = random.integers(0, self.size, (rows, length + 1))
        return _texts(ids, np.full(ids.shape, math.log(self.size)))


@dataclass(frozen=True, slots=True)
class Threads:
    """Each id consists of bits; each bit repeats that of a fixed number of ids before, or is drawn at random.

    The next id depends on several positions, with one bit from each. The mean over these positions says little: each
    must be distinguished from the others and read separately.
    """

    lags: tuple[int, ...] = (2, 3, 5)
    noise: float = 0.1

    @property
    def size(self) -> int:
        """The number of ids."""
        return int(2 ** len(self.lags))

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        shape = (rows, length + 1, len(self.lags))
        bits, tossed = random.integers(0, 2, shape), random.uniform(size=shape) < self.noise
        surprise = np.full(shape, math.log(2.0))
        for thread, lag in enumerate(self.lags):
            for t in range(lag, length + 1):
                before = bits[:, t - lag, thread]
                bits[:, t, thread] = np.where(tossed[:, t, thread], bits[:, t, thread], before)
                same = bits[:, t, thread] == before
                surprise[:, t, thread] = -np.log(np.where(same, 1.0 - self.noise / 2, self.noise / 2))
        return _texts(bits @ (1 << np.arange(len(self.lags))), surprise.sum(axis=-1))


@dataclass(frozen=True, slots=True)
class Recall:
    """A name, its value, the name again: within a text, each name always has the same random value.

    Only the repeated name and values that occurred before count. To find such a value, a model must know the id
    before each value, which the repeated name teaches it, and then find the place where that id was the name
    it has just read: one layer can't do both.
    """

    names: int = 4

    @property
    def size(self) -> int:
        """The number of ids: names first, then values."""
        return 2 * self.names

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        turns = length // 3 + 1
        named = random.integers(0, self.names, (rows, turns))
        values = np.take_along_axis(random.integers(0, self.names, (rows, self.names)), named, axis=1)
        ids = np.stack([named, self.names + values, named], axis=-1).reshape(rows, -1)[:, : length + 1]
        certain = np.zeros(ids.shape, np.bool_)
        certain[:, 2::3] = True
        for t in range(1, length + 1, 3):
            certain[:, t] = (named[:, : t // 3] == named[:, t // 3, None]).any(axis=1)
        texts = _texts(ids, np.zeros(ids.shape))
        texts.y[~certain[:, 1:]] = IGNORED
        return texts


@dataclass(frozen=True, slots=True)
class Alternation:
    """A B A B …, beginning with A or B."""

    size: int = 2

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        ids = (random.integers(0, 2, (rows, 1)) + np.arange(length + 1)) % 2
        return _texts(ids, np.zeros(ids.shape))


@dataclass(frozen=True, slots=True)
class Copies:
    """Symbols, a separator, the same symbols again; only the repetition counts."""

    symbols: int = 15
    count: int = 8

    @property
    def size(self) -> int:
        """The number of ids; the last id is the separator."""
        return self.symbols + 1

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with twice `count` targets each, whatever the length."""
        del length
        once = random.integers(0, self.symbols, (rows, self.count))
        ids = np.concatenate([once, np.full((rows, 1), self.symbols), once], axis=1)
        texts = _texts(ids, np.zeros(ids.shape))
        texts.y[:, : self.count] = IGNORED
        return texts


@dataclass(frozen=True, slots=True)
class FirstAgain:
    """Independent ids; the last one repeats the first, and only it counts."""

    size: int = 8

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        ids = random.integers(0, self.size, (rows, length + 1))
        ids[:, -1] = ids[:, 0]
        texts = _texts(ids, np.zeros(ids.shape))
        texts.y[:, :-1] = IGNORED
        return texts


@dataclass(frozen=True, slots=True)
class Memory:
    """Eight fixed texts of random ids, each with a different first id: once memorized, they are certain."""

    seed: int = 0
    size: int = 12

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Return these texts, repeated to fill the rows."""
        del random
        own = np.random.default_rng([self.seed, 8])
        ids = own.integers(0, self.size, (8, length + 1))
        ids[:, 0] = own.permutation(self.size)[:8]
        ids = np.resize(ids, (rows, length + 1))
        return _texts(ids, np.zeros(ids.shape))


@dataclass(frozen=True)
class Markov:
    """Each id is drawn given the one before, from a row of `chances` (V, V)."""

    chances: Array

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self.chances)

    def draw(self, random: Random, rows: int, length: int) -> Texts:
        """Draw `rows` texts with `length` targets each."""
        reached = self.chances.cumsum(axis=-1)
        ids = random.integers(0, self.size, (rows, length + 1))
        surprise = np.zeros(ids.shape)
        for t in range(1, length + 1):
            row = reached[ids[:, t - 1]]
            ids[:, t] = np.minimum((random.uniform(size=(rows, 1)) > row).sum(axis=1), self.size - 1)
            surprise[:, t] = -np.log(self.chances[ids[:, t - 1], ids[:, t]])
        return _texts(ids, surprise)


UNIFORM = Uniform()
THREADS, TWO_THREADS = Threads(), Threads(lags=(2, 5))
RECALL = Recall()
ALTERNATION = Alternation()
FIRST_AGAIN = FirstAgain()
