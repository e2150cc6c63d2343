"""Models of many layers and heads that write short texts: a cache, or a copy of the model, may be made for fewer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case, Cost, Domain
from conformkit.conformance.evidence.at_sizes import Check, Nearest, Pace, check_at_sizes
from conformkit.conformance.subject.component import Subject

__all__ = [
    "DEEP",
    "LAYERS",
    "SHORT_PAIRS",
    "cheapest_form",
    "check_writer_at_sizes",
    "constructed_writer",
    "found_writer",
    "layers_of",
    "of_a_text",
    "of_a_writer",
    "rows_of",
    "weights_of",
]

_OWN = frozenset({"num_layers", "num_encoder_layers", "num_decoder_layers", "num_heads", "head_width"})
"""Sizes of a model that a text does not show."""
LAYERS = ("num_layers", "num_encoder_layers", "num_decoder_layers")
_WEIGHT = 300.0
"""A weight is drawn and sent: as costly as some hundred multiplications."""


_ROWS, _FEWEST_ROWS, _LONG = 8, 3, 128
"""Texts that are written together, at least: one alone seldom needs what is lost. Long ones are few: they cost most."""
DEEP = 1.5
"""A factor of the weights: a dozen layers make rounding large where it is larger."""
SHORT_PAIRS: Mapping[str, tuple[int, int]] = {"keys": (2, 12), "tokens": (8, 12), "batch": (1, 2)}
"""Sources that a large model reads, and targets that it writes."""


def check_writer_at_sizes(
    draw: Draw, check: Check, cost: Cost, nearest: Nearest, *, after: str, short: Domain, limit: float
) -> None:
    """Check what a small model writes, of every length, and what large models do, as `short` as given."""
    pace, texts, large = Pace(), of_a_text(draw.domain), of_a_writer(draw.domain, **short)
    check_at_sizes(draw, check, cost, nearest, after=after, limit=limit, coverage="some bands", domain=texts, pace=pace)
    check_at_sizes(
        draw, check, cost, nearest, after=after, limit=limit, coverage="marks and last bands", domain=large, pace=pace
    )


def rows_of(sizes: Case, *lengths: str) -> int:
    """Return how many texts of these sizes are written together."""
    return max(sizes["batch"], _FEWEST_ROWS if max(sizes[name] for name in lengths) > _LONG else _ROWS)


def cheapest_form(model: Subject) -> str | None:
    """Return float32 for what is judged in float64, at half the cost: ids are told apart by more than its rounding."""
    return "float32" if model.bound.dtype == "float64" else None


def of_a_text(domain: Domain) -> dict[str, tuple[int, int]]:
    """Return the part of a domain that is about texts: the model is small then."""
    return {name: ends for name, ends in domain.items() if name not in _OWN}


def of_a_writer(domain: Domain, **short: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Return the part of a domain that is about the model, with texts as short as given."""
    return {**{name: ends for name, ends in domain.items() if name in _OWN}, **short}


def constructed_writer(sizes: Case) -> dict[str, int]:
    """Return the constructor's arguments for those of some sizes that are a model's own."""
    found = {name: size for name, size in sizes.items() if name in _OWN and name != "head_width"}
    if "head_width" in sizes:
        width = sizes["head_width"] * sizes["num_heads"]
        found["d_model"] = width + sizes["num_heads"] * (width % 2)  # odd widths are a matter of other clauses
    return found


def found_writer(sizes: Case, built: Mapping[str, Any]) -> dict[str, int]:
    """Return those of some sizes that are a model's own as a constructor's arguments have them."""
    found = {name: int(built[name]) for name in sizes if name in _OWN and name != "head_width"}
    if "head_width" in sizes:
        found["head_width"] = int(built["d_model"]) // int(built["num_heads"])
    return found


def layers_of(sizes: Case) -> int:
    """Return how many layers a model has in all; one for a small model."""
    return sum(sizes.get(name, 0) for name in LAYERS) or 1


def weights_of(sizes: Case) -> float:
    """Estimate the cost of drawing a model's weights; nothing for a small model."""
    width = sizes.get("head_width", 0) * sizes.get("num_heads", 1)
    return _WEIGHT * 4 * width * width * (layers_of(sizes) if width else 0)
