"""What a run finds: one verdict a clause, and the report that holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.assertions.outlines import WITHHELD, Outline
from conformkit.spec.clauses import Clause, Level

__all__ = ["Certainty", "Hint", "LooksLike", "Part", "Report", "Result", "Undeclared", "Verdict"]


class Verdict(StrEnum):
    """What became of a clause. Only PASS is green."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    ERROR = "error"
    """It raised."""
    CRASH = "crash"
    """The process died, exited, flooded its output or used up its memory: the message says which."""
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    NOT_IMPLEMENTED = "not implemented"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"

    @property
    def red(self) -> bool:
        """Whether this verdict alone breaks conformance of a binding clause."""
        return self in {Verdict.FAIL, Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT}


class Certainty(StrEnum):
    """How sure it is that a known mistake is behind a failure."""

    EXACT = "exact"
    """It gives the same numbers on the same input, as no other mistake does that anything tells from it."""
    LIKELY = "likely"
    """It fails in the same way, and no other does; the failure quotes no numbers, or another one quotes others."""
    UNSURE = "unsure"
    """Several fit equally well, or none wholly."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What to tell, a step at a time: what one sees, where to look, what is wrong."""

    symptom: str
    area: str
    mistake: str


@dataclass(frozen=True, slots=True)
class LooksLike:
    """A known mistake that reproduces a failure; `together_with` names others that it takes as well."""

    defect: str
    title: str
    certainty: Certainty
    together_with: tuple[str, ...]
    hint: Hint


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one clause.

    `message` is one sentence; `details` are further lines (what came out, what was wanted, how far); `distance` is
    the worst error in units of what the tolerance allows (1 is the limit), None where nothing was compared;
    `reason` says why a clause is blocked, not implemented, not applicable or not run.
    """

    clause: Clause
    verdict: Verdict
    message: str = ""
    details: tuple[str, ...] = ()
    distance: float | None = None
    reason: str = ""
    blocked_by: str = ""
    where: str = ""
    """The implementation's own line that raised, `mypkg/attention.py:31 in forward`."""
    output: str = ""
    """What the implementation printed meanwhile, cleaned and shortened."""
    looks_like: tuple[LooksLike, ...] = ()
    seconds: float = 0.0
    tried: bool = True
    """Whether its test ran: what it says may then hold numbers that were drawn."""
    unfinished: bool = False
    """Not implemented although it is exported: what it is about raises NotImplementedError, whatever it is given."""
    outline: Outline = WITHHELD
    """What may be told of it where the draws are hidden."""
    excerpt: Excerpt | None = None
    """Where two arrays were too far apart, a piece of both."""


@dataclass(frozen=True, slots=True)
class Undeclared:
    """A choice that a component's results show and conform.toml does not declare.

    `line` under `[table]` would declare it.
    """

    component: str
    choice: str
    declared: Any
    """The value that holds now, which is canonical where nothing is declared."""
    actual: Any
    table: str
    line: str


@dataclass(frozen=True, slots=True)
class Part:
    """The first part of a composite that differs, by the path of its parameters, and what shows it."""

    path: str
    sentence: str


@dataclass(slots=True)
class Report:
    """Everything a run found, complete or not."""

    implementation: str
    location: str
    framework: str
    profile: str
    level: Level
    seed: int
    isolation: str
    device: str
    variant: Mapping[str, Any]
    """Choices that are not canonical."""
    only: tuple[str, ...] = ()
    results: list[Result] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    """Where what it exports is defined, `mypkg/attention.py:12`, by name; a function that generates as `generate`."""
    notes: list[str] = field(default_factory=list)
    """What the binding found out and the reader should know."""
    missing: list[str] = field(default_factory=list)
    """Required components that the implementation lacks."""
    stubs: dict[str, str] = field(default_factory=dict)
    """What is exported and not implemented yet, with the line that says so."""
    undeclared: list[Undeclared] = field(default_factory=list)
    """Choices that were made but not declared; looked for where the implementation does not conform."""
    hints: int = 3
    """How much is told of known mistakes: 1 the symptom, 2 where to look as well, 3 the mistake."""
    parts: dict[str, Part] = field(default_factory=dict)
    """By component, the first part that differs, where clauses about its values fail."""
    pages: str = ""
    """The address below which the pages of the law lie; nothing where nobody said."""
    dtype: str = ""
    """The number format that was asked for, whatever is declared; empty when none was."""
    hidden: bool = False
    """Whether the draws are hidden: no text of the report holds a number that was drawn or wanted, nor the seed."""
    complete: bool = False
    seconds: float = 0.0
    without: tuple[str, ...] = ()
    """Prefixes whose clauses were left out."""

    @property
    def conforms(self) -> bool:
        """Complete, not empty, nothing required missing, and no binding clause red, blocked, a stub's or not run."""
        if not self.complete or self.missing or not any(r.verdict is Verdict.PASS for r in self.results):
            return False
        return not any(self.breaks(result) for result in self.results)

    def breaks(self, result: Result) -> bool:
        """Whether this result alone keeps the implementation from conforming at the level asked for."""
        binding = result.clause.level is Level.MUST or (
            result.clause.level is Level.SHOULD and self.level is Level.SHOULD
        )
        left = result.unfinished or result.verdict in {Verdict.BLOCKED, Verdict.NOT_RUN}
        return binding and (result.verdict.red or left)

    def ledger(self) -> dict[str, int]:
        """Return how many clauses ended in each verdict, and their sum as `clauses`."""
        counts = Counter(result.verdict for result in self.results)
        return {"clauses": len(self.results), **{verdict.value: counts[verdict] for verdict in Verdict}}

    def failures(self) -> list[Result]:
        """Return the red results, binding ones first, else in the order of the law."""
        red = [r for r in self.results if r.verdict.red]
        return sorted(red, key=lambda r: not self.breaks(r))
