"""What to judge, and how."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypedDict, Unpack

from conformkit.conformance.binding.config import Config
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.engine.asked import Asked
from conformkit.spec.clauses import Level, check_selection

__all__ = ["RunOptions", "RunRequest", "drawn_seed", "requested"]

_SEEDS = 10**9
"""Drawn seeds are no larger: they are written in reports and typed again."""


@dataclass(frozen=True, slots=True)
class RunRequest(Asked):
    """What to judge, and how; what its report says again is `Asked`."""

    impl: str
    config: Path | Config | None = None
    """Its declarations; by default, the conform.toml next to it."""
    processes: int = 1
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None
    """Time limit of the run in seconds; clauses left at that point are not run."""
    limit: float | None = None
    """The time limit of the whole, if `seconds` is what earlier profiles have left of it."""
    pause_deadline_when_busy: bool = False
    """Whether the time limit moves while the machine is busy with other work."""
    tries: int | None = None
    """Maximum number of weight assignments to try per component; by default, until the numbers fit."""
    diagnose: bool = True
    """Whether to look for known mistakes behind failures."""
    forbid_kit_imports: bool = False
    """Whether the implementation must not import the kit's own modules: a submission must be the student's own work."""
    judge_first: Collection[str] = ()
    """Clauses to judge before the others."""
    about: Callable[[Mapping[str, str]], Collection[str]] | None = None
    """Given where each export is defined, the names of those to judge; by default all."""
    stop: bool = False
    """Whether the first failure ends the run; what is left is not run."""
    accepted: Collection[str] = ()
    """Clauses whose failure does not end it."""
    thorough: int = 0
    """How many examples hypothesis tries of each clause whose evidence is an oracle or a property; 0 is without it."""
    discover: bool = False
    """Whether components that are neither declared nor called as the contract's are looked for (Profile.searched)."""
    widens: bool = False
    """Whether what is found decides on the profiles: nobody named one, and no file declares anything."""
    among: Collection[str] | None = None
    """The clauses to choose from, by id; None for all of the profile."""
    folder: Path | None = None
    """Folder in which relative paths and module names are looked up; by default the current one."""


class RunOptions(TypedDict, total=False):
    """The fields of `RunRequest`, except `impl`: type checkers know keyword arguments by such a table alone."""

    profile: str
    level: Level
    only: tuple[str, ...]
    without: tuple[str, ...]
    seed: int
    drawn: bool
    isolation: str
    device: str
    dtype: str
    config: Path | Config | None
    processes: int
    limits: Limits
    seconds: float | None
    pause_deadline_when_busy: bool
    tries: int | None
    diagnose: bool
    hints: int
    hidden: bool
    strict: bool
    forbid_kit_imports: bool
    judge_first: Collection[str]
    about: Callable[[Mapping[str, str]], Collection[str]] | None
    stop: bool
    accepted: Collection[str]
    pages: str
    thorough: int
    discover: bool
    widens: bool
    among: Collection[str] | None
    folder: Path | None


def drawn_seed() -> int:
    """Return a seed that nobody knows beforehand."""
    return secrets.randbelow(_SEEDS) + 1


def requested(function: str, impl: str, **options: Unpack[RunOptions]) -> RunRequest:
    """Return the request that the arguments of a public function make.

    Clauses may be one text, with commas between them, as on the command line. Raises TypeError for an unknown option,
    ValueError for an unknown profile, UnknownClauseError for clauses that are not in the profile.
    """
    known = RunOptions.__annotations__
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; nearest: {near[0]}" if near else f"; options: {', '.join(known)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    if "only" in options:
        options["only"] = _listed(options["only"])
    if "without" in options:
        options["without"] = _listed(options["without"])
    check_selection(options.get("only", ()), options.get("profile", "core"))
    return RunRequest(impl, **options)


def _listed(prefixes: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(prefixes, str):
        return tuple(prefix.strip() for prefix in prefixes.split(",") if prefix.strip())
    return tuple(prefixes)
