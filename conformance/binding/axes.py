"""Axes of arrays in einops notation, by dimension: `1 (h d) m` is ((), (h, d), (m,))."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["Groups", "axes_of", "groups_of", "letters_of"]

Groups = tuple[tuple[str, ...], ...]
"""The letters of each dimension, none for a dimension of size 1."""


@lru_cache(maxsize=1024)
def groups_of(axes: str) -> Groups:
    """Return the letters of each dimension."""
    return tuple(tuple(re.findall("[A-Za-z]", group)) for group in re.findall(r"\([^)]*\)|\w", axes))


def letters_of(groups: Groups) -> tuple[str, ...]:
    """Return the letters of all dimensions in order."""
    return tuple(itertools.chain.from_iterable(groups))


def axes_of(groups: Iterable[tuple[str, ...]]) -> str:
    """Return the axes in einops notation."""
    return " ".join(f"({' '.join(group)})" if len(group) > 1 else (group or ("1",))[0] for group in groups)
