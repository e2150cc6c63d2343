"""What a record says a component is: its choices one by one, its weights in canonical names, what no variant has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["Discrepancy", "ReadOff"]

_MAX_VARIANTS = 64


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Something that no variant of the definition has: where, in a sentence, and the numbers that say so."""

    path: str
    told: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class ReadOff:
    """What was read. `open` are things that nothing explains, which may be choices that one call does not show."""

    choices: dict[str, list[Any]] = field(default_factory=dict)
    """By name, the values that the numbers allow, the most likely first."""
    weights: dict[str, Array] = field(default_factory=dict)
    findings: list[Discrepancy] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def choose(self, path: str, name: str, *values: Any) -> None:
        """Note a choice; parts that differ in it are a finding, since a variant has one value for all."""
        known = self.choices.get(name)
        both = list(values) if known is None else [v for v in known if v in values]
        if both:
            self.choices[name] = both
        elif known is not None:
            self.find(path, f"{name} is {values[0]} here, and {known[0]} elsewhere", name=name, here=values[0])

    def find(self, path: str, told: str, **data: Any) -> None:
        """Note what no variant has; the same in several layers once for each."""
        self.findings.append(Discrepancy(path, told, data))

    def place(self, path: str, weights: dict[str, Array]) -> None:
        """Note weights below a canonical path."""
        self.weights |= {f"{path}.{name}" if path else name: array for name, array in weights.items()}

    @property
    def conclusive(self) -> bool:
        """Whether everything was explained, mistakes included: then no search of other variants can help."""
        return bool(self.findings) and not self.open

    def variants(self, base: Variant) -> Iterator[Variant]:
        """Yield the variants that have these choices, the most likely first."""
        names = list(self.choices)
        for values in itertools.islice(itertools.product(*self.choices.values()), _MAX_VARIANTS):
            yield base.but(**dict(zip(names, values, strict=True)))
