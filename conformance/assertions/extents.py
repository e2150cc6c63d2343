"""Which sizes a component was called with: from the smallest to the largest, by component and by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["Extents", "joined", "overall", "widen"]

Extents = dict[str, dict[str, tuple[int, int]]]
"""By component and name of a size, the smallest and the largest."""


def widen(extents: Extents, component: str, sizes: Mapping[str, int]) -> None:
    """Add the sizes of one call."""
    known = extents.setdefault(component, {})
    for name, size in sizes.items():
        least, most = known.get(name, (size, size))
        known[name] = min(least, size), max(most, size)


def joined(several: Iterable[Extents]) -> Extents:
    """Return what all of them cover together."""
    found: Extents = {}
    for extents in several:
        for component, ranges in extents.items():
            for end in (0, 1):
                widen(found, component, {name: bounds[end] for name, bounds in ranges.items()})
    return found


def overall(extents: Extents) -> dict[str, tuple[int, int]]:
    """Return the range of each size over all components."""
    found: Extents = {}
    for ranges in extents.values():
        for end in (0, 1):
            widen(found, "", {name: bounds[end] for name, bounds in ranges.items()})
    return found.get("", {})
