"""A proposed table of conform.toml for one component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Proposal"]


@dataclass(slots=True)
class Proposal:
    """What conform.toml would say of a component: its table, what is unsure, and lines that only its author may add."""

    component: str
    table: dict[str, Any]
    doubts: list[str] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)
    """A line that would make a difference, and what speaks for it."""
    matched: bool = False
    """Whether the definition in some variant gives its numbers."""
    rank: int = 0
