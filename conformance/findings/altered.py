"""What was changed of weights, inputs or a call for an experiment, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

__all__ = ["Altered"]


class Altered(StrEnum):
    """One change; the names that it is told with are what was changed, and what took its place."""

    ABSENT = "absent"
    """Left out: an argument, a bias, a scale, a matrix that is added."""
    IDENTITY = "identity"
    """A matrix that is not applied."""
    TRANSPOSED = "transposed"
    REVERSED = "reversed"
    LATER = "later"
    """Each place has what belongs one place before it."""
    EARLIER = "earlier"
    INVERTED = "inverted"
    """True for False."""
    OTHER = "other"
    """Something else of the same shape is in its place."""
    EXCHANGED = "exchanged"
    OPPOSITE = "opposite"
    """Subtracted, not added."""
    TWICE = "twice"
    MORE = "more"
    """Added where it does not belong."""
    SCORED = "scored"
    """Scores or weights of attention are changed on the way."""
    HIDDEN = "hidden"
    """A mask hides something else, or elsewhere."""
    ORDERED = "ordered"
    """Keys or values come in another order."""
    SHARED = "shared"
    """The first of several layers in place of each."""
    ALONE = "alone"
    """One row of a batch by itself."""
    AGAIN = "again"
    """The same call, once more."""

    def told(self, names: Sequence[str]) -> str:
        """Return what was changed, to follow `it is right …` or `it is what it should be …`."""
        return _WORDS[self].format(*names)

    @property
    def advice(self) -> str:
        """What to look for if the code behaves as if this had been changed."""
        return _LOOK_FOR[self]


_WORDS: Mapping[Altered, str] = {
    Altered.ABSENT: "without {0}",
    Altered.IDENTITY: "without the map by {0}",
    Altered.TRANSPOSED: "with {0} transposed",
    Altered.REVERSED: "with {0} in reverse order",
    Altered.LATER: "with {0} moved one place on",
    Altered.EARLIER: "with {0} moved one place back",
    Altered.INVERTED: "with {0} inverted",
    Altered.OTHER: "with {1} in place of {0}",
    Altered.EXCHANGED: "with {0} and {1} exchanged",
    Altered.OPPOSITE: "with the opposite sign of {0}",
    Altered.TWICE: "with {0} added twice",
    Altered.MORE: "with {0} added to {1}",
    Altered.SCORED: "if {0}",
    Altered.HIDDEN: "if {0}",
    Altered.ORDERED: "if {0}",
    Altered.SHARED: "with {0} of the first layer in every layer",
    Altered.ALONE: "for a row that is alone in its batch",
    Altered.AGAIN: "when the same call is made again",
}
_ORDER = "look for the index, slice or `arange` that reads this: it begins or ends one place off, or runs backwards"
_NAMES = "look where both are used: one name is written where the other belongs"
_LOOK_FOR: Mapping[Altered, str] = {
    Altered.ABSENT: "look where this belongs: it is not passed on, not added, or overwritten before it is used",
    Altered.IDENTITY: "look where this map belongs: its result is not used, or it is not called",
    Altered.TRANSPOSED: "look for a transpose too many or too few where this is used",
    Altered.REVERSED: _ORDER, Altered.LATER: _ORDER, Altered.EARLIER: _ORDER,
    Altered.INVERTED: "look for the comparison or `~` that makes the mask: it keeps what it should hide",
    Altered.OTHER: _NAMES, Altered.EXCHANGED: _NAMES,
    Altered.OPPOSITE: "look for the sign where this is added or subtracted",
    Altered.TWICE: "look where this is added: it is added in two places",
    Altered.MORE: "look where this is added: it does not belong there",
    Altered.SCORED: "look between the scores and the weighted sum of the values: this does not belong there",
    Altered.HIDDEN: "look how the mask is made, and that it is added to the scores, before the softmax, as −∞",
    Altered.ORDERED: "look for the index, `flip`, `roll` or `repeat` that orders one of keys and values, not both",
    Altered.SHARED: "look where the layers are made or called: one layer is used for all",
    Altered.ALONE: "look for what is computed over the batch: an axis too many in a mean, a softmax, a reshape",
    Altered.AGAIN: "look for what a call leaves behind: an attribute, a buffer, a cache, or an input changed in place",
}  # fmt: skip
