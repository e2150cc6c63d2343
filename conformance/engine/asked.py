"""What a run is asked for and its report says again."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from conformkit.spec.clauses import Level

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a run that its report states, so that a reader can repeat it."""

    profile: str = "core"
    level: Level = Level.MUST
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Clauses and prefixes to leave out."""
    seed: int = 0
    drawn: bool = False
    """Whether the seed was drawn for this run, so that nobody knew the inputs beforehand."""
    isolation: str = "process"
    device: str = "cpu"
    dtype: str = ""
    """Number format to judge components in, whatever the implementation declares."""
    hints: int = 3
    """How much the report says about known mistakes: 1 the symptom, 2 also where to look, 3 the mistake."""
    hidden: bool = False
    """Whether the report leaves out the seed and all text that could hold drawn or wanted numbers."""
    strict: bool = False
    """Whether binding clauses that a declaration took away count as not passed."""
    pages: str = ""
    """Base URL of the pages of the law, for links in the report."""

    def asked(self) -> dict[str, Any]:
        """Return these options by name."""
        return {field.name: getattr(self, field.name) for field in fields(Asked)}
