"""Axes of arrays in the manner of einops, dimension by dimension: `1 (h d) m` is ((), (h, d), (m,))."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["Groups", "axes_of", "groups_of", "letters_of"]

Groups = tuple[tuple[str, ...], ...]
"""The letters of each dimension, none for one of a single entry."""


@lru_cache(maxsize=1024)
def groups_of(axes: str) -> Groups:
    """Return the letters of each dimension."""
    return tuple(tuple(re.findall("[A-Za-z]", group)) for group in re.findall(r"\([^)]*\)|\w", axes))


def letters_of(groups: Groups) -> tuple[str, ...]:
    """Return the letters of all dimensions in a row."""
    return tuple(itertools.chain.from_iterable(groups))


def axes_of(groups: Iterable[tuple[str, ...]]) -> str:
    """Return the axes as one writes them."""
    return " ".join(f"({' '.join(group)})" if len(group) > 1 else (group or ("1",))[0] for group in groups)
