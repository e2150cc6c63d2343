"""Strategies for arrays: numbers, ids, masks and weights, each from a seed that hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.limits import SizeLimits
from conformkit.conformance.binding.sizes import complete
from conformkit.spec.arrays import Array
from conformkit.spec.components import component
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["ids", "masks", "seeds", "values", "weights"]

_SEEDS = (1 << 32) - 1
Drawn = TypeVar("Drawn")


def seeds() -> st.SearchStrategy[int]:
    """Return a strategy for the seed of a generator."""
    return st.integers(0, _SEEDS)


def values(*shape: int, scale: float = 1.0) -> st.SearchStrategy[Array]:
    """Return a strategy for normal numbers of this shape and standard deviation, exact in float32."""
    return _drawn(lambda draw: draw.values(*shape, scale=scale))


def ids(vocab_size: int, *shape: int) -> st.SearchStrategy[Array]:
    """Return a strategy for token ids of this shape, int64. Raises ValueError for an empty vocabulary."""
    if vocab_size < 1:
        raise ValueError(f"vocab_size = {vocab_size}: there are no ids to draw")
    return _drawn(lambda draw: draw.ids(vocab_size, *shape))


def masks(*shape: int, allowed: float = 0.6) -> st.SearchStrategy[Array]:
    """Return a strategy for boolean masks (…, Tq, Tk) in which every query may attend to some key."""
    return _drawn(lambda draw: draw.mask(*shape, allowed=allowed))


def weights(
    name: str, sizes: Mapping[str, Any], variant: Variant = CANONICAL, *, gain: float = 1.0
) -> st.SearchStrategy[dict[str, Array]]:
    """Return a strategy for the canonical weights of a component of the contract, by name.

    Sizes that are left out have the contract's defaults. Raises KeyError if there is no such component, NoSizeError if
    the sizes do not go together.
    """
    found = component(name)
    parameters = found.parameters(complete(dict(sizes), found, variant, SizeLimits()), variant)
    return _drawn(lambda draw: draw.weights(parameters, gain=gain))


def _drawn(make: Callable[[Draw], Drawn]) -> st.SearchStrategy[Drawn]:
    return seeds().map(lambda seed: make(Draw(seed, "strategies")))
