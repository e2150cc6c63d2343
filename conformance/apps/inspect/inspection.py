"""What an inspection found, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Conspicuous", "Heads", "Inspection", "Part", "Weight"]


@dataclass(frozen=True, slots=True)
class Part:
    """What a part returned when it was last called; its name is empty for the whole."""

    name: str
    kind: str
    shape: tuple[int, ...]
    rms: float
    """Of what is finite, as `largest`."""
    largest: float
    broken: int
    """How many numbers are NaN or infinite."""
    calls: int
    dead: int
    """How many units of an activation inside are 0 at every position, of `units`."""
    units: int


@dataclass(frozen=True, slots=True)
class Heads:
    """The mean entropy of a part's attention by head, in nats, and the most that it can be."""

    part: str
    entropy: tuple[float, ...]
    most: float


@dataclass(frozen=True, slots=True)
class Weight:
    """A trainable parameter; its gradient's norm is None where no gradient arrives, NaN where it is not finite."""

    name: str
    shape: tuple[int, ...]
    gradient: float | None

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def owner(self) -> str:
        """The part that holds it."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Conspicuous:
    """Something that a right, untrained model hardly shows: where, what, and what to do next."""

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
    """Whether there are gradients to speak of."""
    loss: float | None
    """Of a language model, the mean cross-entropy in nats on ids drawn evenly."""
    conspicuous: Sequence[Conspicuous] = field(default=())
