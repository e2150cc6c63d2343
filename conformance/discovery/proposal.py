"""A proposed table of conform.toml for one component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.discovery.tracing.reading import Discrepancy

__all__ = ["NAME_ALONE", "Proposal"]

NAME_ALONE = "no variant of the definition gives its numbers: chosen by its name and shape alone"
"""The doubt about a component that nothing but its name confirms."""


@dataclass(slots=True)
class Proposal:
    """A draft of a component's table in conform.toml, with doubts, and lines that only its author may add."""

    component: str
    table: dict[str, Any]
    doubts: list[str] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)
    """A line that would make a difference, and the reason for it."""
    mistakes: list[Discrepancy] = field(default_factory=list)
    """What one followed call shows that no variant has, everything else being explained."""
    placed: dict[str, str] = field(default_factory=dict)
    """Where its weights are, by the one followed call that explains all of it; nothing where none does."""
    matched: bool = False
    """Whether some variant of the definition gives its numbers."""
    compared: bool = False
    """Whether its author's code gives what it returns to torch's cross-entropy, which takes logits."""
    rank: int = 0
    left_open: tuple[str, str] = ("", "")
    """Why nobody can say whether it is right, and what settles it."""

    def seen(self) -> list[str]:
        """Return its mistakes in sentences, each once."""
        return list(dict.fromkeys(mistake.told for mistake in self.mistakes))
