"""What an inspection found, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Conspicuous", "Heads", "Inspection", "Part", "Weight"]


@dataclass(frozen=True, slots=True)
class Part:
    """What a part returned in its last call; the name is empty for the whole component."""

    name: str
    kind: str
    shape: tuple[int, ...]
    rms: float
    """Over finite numbers, like `largest`."""
    largest: float
    broken: int
    """Number of values that are NaN or infinite."""
    calls: int
    dead: int
    """Number of an inner activation's units, out of `units`, that are 0 at every position."""
    units: int


@dataclass(frozen=True, slots=True)
class Heads:
    """The mean entropy of a part's attention by head, in nats, and its maximum."""

    part: str
    entropy: tuple[float, ...]
    most: float
    distance: tuple[float, ...] = ()
    """How far queries look, in positions, by head; nothing where keys are another sequence."""
    future: tuple[float, ...] = ()
    """The mean weight on later keys, by head; nothing where keys are another sequence."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A trainable parameter; its gradient's norm is None if no gradient arrives, NaN if it is not finite."""

    name: str
    shape: tuple[int, ...]
    gradient: float | None

    @property
    def count(self) -> int:
        """Number of values it has."""
        return math.prod(self.shape)

    @property
    def owner(self) -> str:
        """The part that holds it."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Conspicuous:
    """Something that a right, untrained model rarely shows: where, what, and what to do next."""

    place: str
    problem: str
    advice: str


@dataclass(frozen=True)
class Inspection:
    """One component, constructed once, called once and differentiated once."""

    implementation: str
    framework: str
    component: str
    seed: int
    isolation: str
    sizes: Mapping[str, object]
    inputs: tuple[int, ...]
    """The shape of the first input."""
    parts: Sequence[Part]
    heads: Sequence[Heads]
    weights: Sequence[Weight]
    differentiated: bool
    """Whether there are gradients."""
    loss: float | None
    """For a language model, the mean cross-entropy in nats on uniformly drawn ids."""
    conspicuous: Sequence[Conspicuous] = field(default=())
