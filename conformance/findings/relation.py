"""How a result is related to the one that was wanted, as data and in words: half of it, in reverse order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from conformkit.conformance.findings.altered import Altered

__all__ = ["How", "Relation"]


class How(StrEnum):
    """What makes the result of the wanted one."""

    FACTOR = "factor"
    TIMES = "times"
    """The same of one number alone."""
    OFFSET = "offset"
    BOTH = "both"
    """A factor and an offset."""
    FACTORS = "factors"
    """Along `axis`, each index has a factor of its own."""
    OFFSETS = "offsets"
    ZERO = "zero"
    FUNCTION = "function"
    """A function of the wanted result, by name."""
    LACKS = "lacks"
    """The wanted result is this function of it."""
    REVERSED = "reversed"
    SHIFTED = "shifted"
    """By a number of places along `axis`."""
    ORDER = "order"
    """Another order, or some indices more than once; `numbers` says from where each comes."""
    SWAPPED = "swapped"
    """Two axes have changed places."""
    MEMORY = "memory"
    """Read in another order of its axes."""
    INPUT = "input"
    """It is an input of the call."""
    MORE = "more"
    """An input, times a number, is added."""
    MADE = "made"
    """It is the right result for weights or inputs with a `change`."""
    SAME = "same"
    """A call with this `change` gives the same."""
    RIGHT = "right"
    """A call with this `change` gives what was wanted."""
    SUPPOSED = "supposed"
    """It is what comes out with a slip that is usual there, in words."""
    READS = "reads"
    """It changes with what it must not see, by name."""
    BLIND = "blind"
    """It does not change with what it must see."""
    UNSTEADY = "unsteady"
    """The same call gives something else the second time."""
    PLACE = "place"
    """Nothing more is known than where it is wrong."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How a result is related to the wanted one; `axis` and `names` are words for the reader."""

    how: How
    numbers: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    """A function's name, an input's, or what a number is: `1/√d_model`."""
    axis: str = ""
    where: str = ""
    """Where it is wrong, if not everywhere: `positions from 3 on`."""
    change: Altered | None = None
    """What was changed in an experiment, of `names`."""

    def __str__(self) -> str:
        """Return one sentence, `every entry is 0.5 times what it should be`."""
        said = _SAYS[self.how](self)
        if self.how is How.PLACE:
            return f"wrong only in {self.where}"
        return f"{said}, in {self.where}; the rest is right" if self.where else said

    @property
    def telling(self) -> bool:
        """Whether it says what to look for: not where it is wrong alone, and not a factor that could be any number."""
        if self.how not in {How.FACTOR, How.TIMES, How.BOTH}:
            return self.how is not How.PLACE
        factor = abs(self.numbers[0])
        whole = max(factor, 1 / factor) if factor else 0.5
        return bool(self.names) or math.isclose(whole, round(whole), rel_tol=1e-5)

    @property
    def advice(self) -> str:
        """What to look for in the code; empty where the numbers do not say that."""
        if not self.telling:
            return ""
        if self.change is not None:
            return self.change.advice
        return _LOOK_FOR.get(self.how, "").format("", *self.names)


def _number(value: float) -> str:
    part = 1 / value if value else 0.0
    if abs(part) > 2 and math.isclose(part, round(part), rel_tol=1e-5):
        return f"{'−' if part < 0 else ''}1/{abs(round(part))}"
    return f"{value:.6g}".replace("-", "−")


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}".replace("-", "−") for value in values[:_MAX_LISTED]) + (
        ", …" if len(values) > _MAX_LISTED else ""
    )


_MAX_LISTED = 6
"""Maximum number of factors, offsets or indices to list."""


def _factor(found: Relation) -> str:
    (factor,) = found.numbers
    if factor == -1:
        return "every entry has the opposite sign"
    return f"every entry is {_number(factor)}{_named(found)} times what it should be"


def _named(found: Relation) -> str:
    return f" ({' or '.join(found.names)})" if found.names else ""


def _offset(found: Relation) -> str:
    (offset,) = found.numbers
    return f"every entry is {_number(abs(offset))} too {'large' if offset > 0 else 'small'}"


def _both(found: Relation) -> str:
    factor, offset = found.numbers
    rest = f"{'plus' if offset > 0 else 'minus'} {_number(abs(offset))}"
    return f"every entry is {_number(factor)} times what it should be, {rest}"


def _shifted(found: Relation) -> str:
    by = int(found.numbers[0])
    return f"{found.axis}: each has what belongs {abs(by)} {'before' if by > 0 else 'after'} it"


def _more(found: Relation) -> str:
    (times,) = found.numbers
    (name,) = found.names
    if times == -1:
        return f"it is what it should be without {name}"
    if times == 1:
        return f"it is what it should be, and {name} is added once more"
    if times == -2:
        return f"it is what it should be with {name} subtracted, not added"
    return f"it is what it should be plus {_number(times)} × {name}"


def _order(found: Relation) -> str:
    indices = tuple(found.numbers)
    if len(set(indices)) == 1:
        return f"{found.axis}: all of them have what belongs to {_number(indices[0])} alone"
    return f"{found.axis} are in another order: 0, 1, 2, … have what belongs to {_listed(indices)}"


def _changed(found: Relation) -> str:
    return found.change.told(found.names) if found.change is not None else ""


_SAYS: Mapping[How, Callable[[Relation], str]] = {
    How.FACTOR: _factor,
    How.TIMES: lambda it: f"it is {_number(it.numbers[0])}{_named(it)} times what it should be",
    How.OFFSET: _offset,
    How.BOTH: _both,
    How.FACTORS: lambda it: f"{it.axis}: each has a factor of its own, {_listed(it.numbers)}",
    How.OFFSETS: lambda it: f"{it.axis}: the same numbers are added everywhere, {_listed(it.numbers)}",
    How.ZERO: lambda _: "every entry is 0",
    How.FUNCTION: lambda it: f"it is {it.names[0]} what it should be{f', over the {it.axis}' if it.axis else ''}",
    How.LACKS: lambda it: f"{it.names[0]} it is what it should be{f', over the {it.axis}' if it.axis else ''}",
    How.REVERSED: lambda it: f"{it.axis} are in reverse order",
    How.SHIFTED: _shifted,
    How.ORDER: _order,
    How.SWAPPED: lambda it: f"{it.names[0]} and {it.names[1]} have changed places",
    How.MEMORY: lambda _: "the right numbers, read in another order of the axes: a reshape or view without a transpose",
    How.INPUT: lambda it: f"it is {it.names[0]} itself",
    How.MORE: _more,
    How.MADE: lambda it: f"it is what it should be {_changed(it)}",
    How.SAME: lambda it: f"the same comes out {_changed(it)}: it has no effect",
    How.RIGHT: lambda it: f"what it should be comes out {_changed(it)}",
    How.SUPPOSED: lambda it: f"it is what comes out {it.names[0]}",
    How.READS: lambda it: f"it changes with {it.names[0]}, which it must not see",
    How.BLIND: lambda it: f"it does not change with {it.names[0]}",
    How.UNSTEADY: lambda _: "the same call gives something else the second time",
    How.PLACE: lambda _: "",
}  # fmt: skip
_FACTOR = (
    "look for what multiplies or divides by that number: a mean where a sum belongs or a sum where a mean does, a "
    "scale applied twice or not at all, a wrong sign"
)
_ADDED = "look for what is added: a bias or a shift that does not belong there, that is missing, or that counts twice"
_ORDER = (
    "look for the index, `flip`, `roll`, `transpose` or loop that runs over this axis: it reads or writes the right "
    "numbers in the wrong order"
)
_AXES = "name all axes where they are split, merged or exchanged: `transpose` or `permute` first, then `reshape`"
_INPUT = "look where this input is added or left out: a residual connection that is missing, or made twice"
_SEEN = "look for the mask of this call: how it is made, whether it is passed on, and with which mask it is combined"
_LOOK_FOR = {
    How.READS: _SEEN, How.BLIND: _SEEN,
    How.FACTOR: _FACTOR, How.TIMES: _FACTOR, How.FACTORS: _FACTOR, How.BOTH: _FACTOR,
    How.OFFSET: _ADDED, How.OFFSETS: _ADDED, How.REVERSED: _ORDER, How.SHIFTED: _ORDER, How.ORDER: _ORDER,
    How.SWAPPED: _AXES, How.MEMORY: _AXES, How.INPUT: _INPUT, How.MORE: _INPUT,
    How.UNSTEADY: Altered.AGAIN.advice,
    How.FUNCTION: "look for a step that is done once too often: {1} the result",
    How.LACKS: "the last step is missing: {1} the result",
}  # fmt: skip
