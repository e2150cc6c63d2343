"""A text whose entropy is known exactly, so that the least possible loss of a model is known.

    x_t = (x_{t-1} + x_{t-4}) mod 12 with probability 4/5, otherwise one of the 12 drawn uniformly
    H = -p ln p - 11 q ln q,  p = 4/5 + q,  q = 1/5 · 1/12        0.9160 nats a symbol

A model has to see two places at once, one and four symbols back, and add them. In a window of T symbols the first
three predictions lack one of the two, and then all symbols are equally probable: the least mean loss is
H + 3 (ln 12 - H) / T. Held-out loss near that means that the model does it; below it, that it sees what it predicts.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["ENTROPY", "SYMBOLS", "floor_in_windows", "synthetic_text"]

SYMBOLS = "abcdefghijkl"
_NOISE = 0.2

_Q = _NOISE / len(SYMBOLS)
_P = 1 - _NOISE + _Q
ENTROPY = -_P * math.log(_P) - (len(SYMBOLS) - 1) * _Q * math.log(_Q)
"""In nats a symbol, given everything before."""


def floor_in_windows(length: int) -> float:
    """Return the least loss, in nats a symbol, that a model can have that sees windows of this length."""
    blind = min(3, length)
    return ENTROPY + blind * (math.log(len(SYMBOLS)) - ENTROPY) / length


def synthetic_text(length: int, seed: int = 0) -> str:
    """Return `length` symbols of the source, written as letters; the same seed gives the same text everywhere."""
    source = np.random.default_rng(seed)
    size = len(SYMBOLS)
    drawn = source.integers(size, size=length).tolist()
    noisy = (source.random(length) < _NOISE).tolist()
    symbols: list[int] = []
    for t in range(length):
        free = noisy[t] or t < 4
        symbols.append(drawn[t] if free else (symbols[t - 1] + symbols[t - 4]) % size)
    return "".join(SYMBOLS[symbol] for symbol in symbols)
