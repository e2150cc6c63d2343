"""Which choices a search for undeclared ones looks at in a component, and in which order: read off their records.

A component shows the choices that the oracles say reach it (`spec/choices/reach.json`). Encoders and encoder-decoders
are made of usual parts: of rare choices, only those are looked for in them whose record says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from conformkit.spec.choices.reach import beside_rare, reached, shaping, shaping_by_rare_values
from conformkit.spec.choices.record import Rarity
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES
from conformkit.spec.variants import choices, records

__all__ = [
    "ANYWHERE",
    "LAYERS_OF_STACKS",
    "RARE_SHAPING",
    "SHAPELESS",
    "SHAPING",
    "STACKS",
    "every",
    "of_topic",
    "rare",
    "usual",
]

_WHOLE = ("model", "norms", "positions", "feed_forward", "attention")
_LAYER = ("norms", "attention", "feed_forward")
_RARE = ("model", "norms", "attention", "feed_forward", "rotary")
_READ = ("experts", "latents", "relative", "window_base")
"""Topics in the order in which their choices are tried: in whole models, in layers, of rare choices, and of others."""
LAYERS_OF_STACKS = ("TransformerBlock", "EncoderLayer", "DecoderLayer")
STACKS = {"Encoder": "EncoderLayer", "Decoder": "DecoderLayer"}
"""Their variants follow from their layers, where there are any."""

SHAPING = shaping()
"""Usual choices that add or remove parameters."""
RARE_SHAPING = frozenset(
    name for name in shaping_by_rare_values() if records()[name].rarity is not Rarity.READ
)  # fmt: skip
"""Rare choices that do, and usual ones of which a rare value does."""
_OF_WIDTHS = frozenset({"rotary_fraction", "rotary_scaling"})
"""Choices that some widths of heads do not allow."""
SHAPELESS = frozenset(choices()) - shaping() - shaping_by_rare_values() - _OF_WIDTHS
"""Choices on which neither sizes nor parameters depend."""


@functools.cache
def usual(component: str) -> tuple[str, ...]:
    """Return the usual choices of a component in the order in which they are tried; one of two topics comes twice."""
    order = _LAYER if component in LAYERS_OF_STACKS or component in STACKS else _WHOLE
    return _ordered(_among(reached(component), component), Rarity.USUAL, order)


@functools.cache
def rare(component: str) -> tuple[str, ...]:
    """Return the rare choices of a component, and the usual ones that show next to them alone.

    Of the latter, those that add parameters come first: few of them give the right number of parameters.
    """
    beside = _among(beside_rare(component), component)
    hidden = _ordered(beside, Rarity.USUAL, _WHOLE)
    found = _ordered([*_among(reached(component), component), *beside], Rarity.RARE, _RARE)
    return (*(c for c in hidden if c in SHAPING), *found, *(c for c in hidden if c not in SHAPING))


@functools.cache
def every(component: str) -> tuple[str, ...]:
    """Return all choices that concern a component; none for those that no search examines."""
    if component not in ANYWHERE and component not in STACKS:
        raise KeyError(component)
    shown = _among((*reached(component), *beside_rare(component)), component)
    return (*usual(component), *rare(component), *_ordered(shown, Rarity.READ, _READ))


@functools.cache
def of_topic(topic: str) -> tuple[str, ...]:
    """Return the choices of a topic in the order in which they are tried."""
    known = records()
    found = [choice for choice, record in known.items() if topic in record.tried]
    return tuple(sorted(found, key=lambda choice: known[choice].tried[topic]))


def _among(shown: Iterable[str], component: str) -> list[str]:
    """Return those of the choices that a component shows which are looked for in it."""
    known = records()
    here = [c for c in shown if component not in known[c].not_in]
    return [
        c for c in here
        if known[c].rarity is Rarity.USUAL or component in COMPONENTS or component in known[c].beyond
    ]  # fmt: skip


def _ordered(shown: Iterable[str], rarity: Rarity, topics: Iterable[str]) -> tuple[str, ...]:
    """Return those of a rarity by topic; a topic is a component's own if it shows a choice of that topic alone."""
    known = records()
    found = [choice for choice in shown if known[choice].rarity is rarity]
    own = {topic for choice in found for topic in known[choice].tried if len(known[choice].tried) == 1}
    return tuple(choice for topic in topics if topic in own for choice in of_topic(topic) if choice in found)


ANYWHERE = frozenset(name for name in (*COMPONENTS, *SEVERAL_NAMES) if usual(name) and name not in STACKS)
"""Components that a search examines."""
