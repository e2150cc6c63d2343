"""What to judge, and how."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.binding.config import Config
from conformkit.conformance.driver.limits import Limits
from conformkit.spec.clauses import Level

__all__ = ["RunRequest"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to judge, and how."""

    impl: str
    profile: str = "core"
    level: Level = Level.MUST
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Clauses and prefixes that are left out."""
    seed: int = 0
    isolation: str = "process"
    device: str = "cpu"
    dtype: str = ""
    """The number format to judge its components in, whatever it declares."""
    config: Path | Config | None = None
    """What it declares; by default, what the file beside it says."""
    processes: int = 1
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None
    """How long the run may take; clauses that are left then are not run."""
    tries: int | None = None
    """How many places for the weights of a component are tried; by default, until the numbers fit."""
    diagnose: bool = True
    """Whether to look for the known mistakes behind what fails."""
    hints: int = 3
    """How much the report tells of them: 1 the symptom, 2 where to look as well, 3 the mistake."""
    unbound: bool = False
    """Whether weights whose places nobody can tell are no obstacle."""
    hidden: bool = False
    """Whether the report leaves out what could hold drawn or wanted numbers, and the seed."""
    apart: bool = False
    """Whether the implementation may not import the kit's own modules: what is handed in is nobody's own work then."""
    first: Collection[str] = ()
    """Clauses that are judged before the others."""
    pages: str = ""
    """Where the pages of the law are, for the report to link to: an address that they lie below."""
    folder: Path | None = None
    """Where relative paths and module names are looked up; the current folder by default."""
