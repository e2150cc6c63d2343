"""What an implementation defines, as the worker describes it: classes, functions, dictionaries of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Item", "Signature"]

Signature = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Item:
    """Something that the implementation defines, as the worker describes it."""

    path: str
    kind: str
    construct: Signature | None
    call: Signature | None
    config: str | None
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By arguments of its constructor, the classes whose objects their annotations ask for."""

    @property
    def name(self) -> str:
        """Its name within its module."""
        return self.path.rpartition(":")[2]
