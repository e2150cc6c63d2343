"""Notes on limits that nobody declared: sizes that some components refuse, and what is drawn instead."""

from __future__ import annotations

from collections.abc import Iterable

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.limits import Range
from conformkit.conformance.text import listed

__all__ = ["limit_notes"]

_NAMED = 8


def limit_notes(bounds: Iterable[Bound]) -> list[str]:
    """Return one note for each rule that was found, with the components that have it and the line that declares it."""
    found: dict[tuple[str, Range], list[str]] = {}
    for bound in bounds:
        for size, rule in bound.found.items():
            found.setdefault((size, rule), []).append(bound.component.name)
    return [_note(size, rule, names) for (size, rule), names in found.items()]


def _note(size: str, rule: Range, names: list[str]) -> str:
    refuse = "refuses" if len(names) == 1 else "refuse"
    line = f"; `{size} = {rule.line()}` under [limits] in conform.toml declares it" if rule.line() else ""
    return f"{listed(names, _NAMED)} {refuse} some sizes: {size} is drawn only as {rule.words()} (found by trial){line}"
