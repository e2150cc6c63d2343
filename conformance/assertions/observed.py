"""A call that the code answered, and what it takes to make it again or to work out what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformkit.spec.arrays import Array

__all__ = ["Observed"]


@dataclass(frozen=True, slots=True)
class Observed:
    """One call: what came back, and what it was given, by the names of the contract; what was left out is missing."""

    out: Array
    given: Mapping[str, Array]
    optional: frozenset[str] = frozenset()
    """Which inputs may be left out."""
    again: Callable[[Mapping[str, Array]], Array] | None = None
    """Call once more with such inputs."""
    steady: bool = True
    """Whether the same call may be made again: one that fills a cache changes it."""
    weights: Mapping[str, Array] = field(default_factory=dict)
    """Canonical weights, empty where they are not known."""
    defined: Callable[[Mapping[str, Array], Mapping[str, Array]], Array] | None = None
    """The definition's result for weights and inputs."""
    causal: bool = False
    """Whether no place may see later ones, where no definition says so."""
