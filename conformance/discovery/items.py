"""Definitions of an implementation, as described by the worker: classes, functions, dictionaries of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformkit.conformance.binding.signatures import Signature

__all__ = ["Item"]


@dataclass(frozen=True, slots=True)
class Item:
    """A definition of the implementation, as described by the worker."""

    path: str
    kind: str
    construct: Signature | None
    call: Signature | None
    config: str | None
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By constructor argument, the classes in its annotation."""
    says: str = ""
    """How its docstring begins, and that of its module."""
    boolean: Sequence[str] = ()
    """Arguments of its call that are documented as Boolean."""
    memory: str = ""
    """The argument of its `decode` that gets what `encode` returns, if it has no call of its own."""
    reads: Sequence[str] = ()
    """Numbers and arrays of its module that a function reads, in its order."""
    data_set: bool = False
    """Whether it is a class without a call whose items are read by their number."""

    @property
    def name(self) -> str:
        """Its name within its module."""
        return self.path.rpartition(":")[2]
