"""From which sizes on something does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Pattern", "Threshold"]


class Pattern(StrEnum):
    """At which sizes it does not hold."""

    FROM = "from"
    """From `first` on, and up to `last` it holds; at multiples of `step`, if there is one, it holds too."""
    ALONE = "alone"
    """At `first`, between `last` and `beyond`, where it holds."""
    SOMEWHERE = "somewhere"
    """At `first`; no smaller size could be judged."""
    MULTIPLES = "multiples"
    """At multiples of `step`, from `first` on."""
    ODD = "odd"
    """At odd sizes, from `first` on."""
    SCATTERED = "scattered"
    """From `first` on, at some sizes."""
    SMALL = "small"
    """From `first` up to the size before `beyond`."""
    LARGER = "larger"
    """Where a size is larger than `ratio` times another one, and `more`."""
    EQUAL = "equal"
    """Where it is just as large."""
    THESE = "these"
    """At the sizes that were tried, for no reason that was found."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A pattern, and which sizes it is about: two that are multiplied, added or equal count as one."""

    pattern: Pattern
    sizes: tuple[str, ...] = ()
    joined: str = ""
    """How two sizes make one: `×`, `+` or `=`."""
    first: int = 0
    last: int | None = None
    beyond: int | None = None
    step: int = 0
    ratio: int = 1
    more: int = 0
    further: Threshold | None = None
    """A threshold of another size, which holds at the same time."""
