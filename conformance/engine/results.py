"""What a run finds: one verdict per clause, and the report that holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.assertions.extents import Extents, joined
from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.asked import Asked
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.hint import Hint
from conformkit.conformance.findings import words
from conformkit.conformance.findings.finding import Finding
from conformkit.conformance.findings.outline import WITHHELD, Outline
from conformkit.spec.clauses import Clause

__all__ = ["Causes", "Certainty", "DifferingPart", "Hint", "LooksLike", "Report", "Result", "Undeclared", "Verdict"]


class Verdict(StrEnum):
    """The outcome of a clause. Only PASS is green."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
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


_RED = frozenset(verdict.value for verdict in Verdict if verdict.red)


class Certainty(StrEnum):
    """How certain it is that a known mistake causes a failure."""

    EXACT = "exact"
    """It gives the same numbers on the same input, and no other distinguishable mistake does."""
    LIKELY = "likely"
    """Only it fails in the same way, but the failure quotes no numbers, or another failure quotes different ones."""
    UNSURE = "unsure"
    """Several fit equally well, or none fits fully."""


@dataclass(frozen=True, slots=True)
class LooksLike:
    """A known mistake that reproduces a failure; `together_with` names others that are needed too."""

    defect: str
    title: str
    certainty: Certainty
    together_with: tuple[str, ...]
    hint: Hint


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one clause.

    `finding` is what a red one found; `distance` is the worst error in units of what the tolerance allows (1 is the
    limit), None where nothing was compared; `reason` says why a clause is blocked, not implemented, not applicable or
    not run.
    """

    clause: Clause
    verdict: Verdict
    finding: Finding | None = None
    distance: float | None = None
    reason: str = ""
    blocked_by: str = ""
    where: str = ""
    """The implementation's own line that raised, `mypkg/attention.py:31 in forward`."""
    output: str = ""
    """What the implementation printed during the test, cleaned and shortened."""
    looks_like: tuple[LooksLike, ...] = ()
    seconds: float = 0.0
    tried: bool = True
    """Whether its test ran: its texts may then hold drawn numbers."""
    unfinished: bool = False
    """Exported but not implemented: its subject always raises NotImplementedError."""
    outline: Outline = WITHHELD
    """What may be shown of the reason if the draws are hidden."""
    excerpt: Excerpt | None = None
    """A piece of both arrays, if two arrays were too far apart."""
    extents: Extents = field(default_factory=dict)
    """The sizes with which components were called."""
    exempted_by: str = ""
    """The key of conform.toml because of which it is not judged, or not at all its sizes; empty if there is none."""
    remark: str = ""
    """What was measured and is not judged, for the report's notes."""

    @property
    def message(self) -> str:
        """What was found as one sentence, for whoever prints it: nothing is decided by these words."""
        return words.message(self.finding) if self.finding is not None else ""

    @property
    def details(self) -> tuple[str, ...]:
        """Further lines: how many entries differ, and under which setting."""
        return words.details(self.finding) if self.finding is not None else ()

    @property
    def threshold(self) -> str:
        """From which size on it does not hold, in words, if it holds for small ones."""
        found = self.finding.threshold if self.finding is not None else None
        return words.begins(found) if found is not None else ""


@dataclass(frozen=True, slots=True)
class Undeclared:
    """A choice that a component's results show but conform.toml does not declare.

    `line` under `[table]` would declare it.
    """

    component: str
    choice: str
    declared: Any
    """The declared value; the canonical one if nothing is declared."""
    actual: Any
    table: str
    line: str


@dataclass(frozen=True, slots=True)
class DifferingPart:
    """The first part of a composite that differs, by the path of its parameters, and the evidence."""

    path: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Causes:
    """The known causes of failures: undeclared choices, differing parts, known mistakes.

    `results` are the results with the known mistakes in them; empty where none were looked for yet.
    """

    undeclared: Sequence[Undeclared] = ()
    parts: Mapping[str, DifferingPart] = field(default_factory=dict)
    results: Sequence[Result] = ()


@dataclass(frozen=True, slots=True)
class Report(Asked):
    """Everything a run has found, complete or not, and what it was asked for."""

    implementation: str
    location: str
    framework: str
    variant: Mapping[str, Any] = field(default_factory=dict)
    """Choices that are not canonical."""
    results: Sequence[Result] = field(default_factory=list)
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each export is defined, `mypkg/attention.py:12`, by name; a generating function as `generate`."""
    notes: Sequence[str] = field(default_factory=list)
    """Notes from binding for the reader."""
    missing: Sequence[str] = field(default_factory=list)
    """Required components that the implementation lacks."""
    unusable: Mapping[str, Unusable] = field(default_factory=dict)
    """What is there or declared and could not be judged, with the reason: no conformance, and no mistake either."""
    skipped: Sequence[str] = field(default_factory=list)
    """What conform.toml leaves out of the run."""
    stubs: Mapping[str, str] = field(default_factory=dict)
    """Exports that are not implemented yet, with the line that raises NotImplementedError."""
    undeclared: Sequence[Undeclared] = field(default_factory=list)
    """Choices that were made but not declared; looked for if the implementation does not conform."""
    parts: Mapping[str, DifferingPart] = field(default_factory=dict)
    """By component, the first part that differs, if clauses about its values fail."""
    complete: bool = False
    late: str = ""
    """What ended the run before all clauses were judged, a time limit or a failure; the others are not run."""
    seconds: float = 0.0
    excuses: Sequence[Excuse] = ()
    """What conform.toml declares beyond renamings."""
    date: str = ""
    """The day of the run, `2026-11-23`, if its seed was drawn."""
    live: bool = False
    """Whether live objects were judged, as in a notebook; `implementation` is then the argument of `check`."""
    found: Mapping[str, str] = field(default_factory=dict)
    """What components were found to be where nothing declares them, `module:Name`."""
    accounted: bool = False
    """Whether everything that the code defines has been taken for something: what is not there is not hidden either."""
    own_name: str = ""
    """What `--impl` is in commands, if not `implementation`: the author's own name for what was handed in."""
    known: Mapping[str, str] | None = None
    """Clauses that a baseline lists, with the verdicts that they had; None without one."""
    baseline: str = ""
    """The file of the baseline."""

    @property
    def conforms(self) -> bool:
        """Complete, not empty, nothing lacking, and no binding clause red, blocked, unfinished or not run."""
        lacking = self.missing or self.undeclared or self.unusable
        if not self.complete or lacking or not any(r.verdict is Verdict.PASS for r in self.results):
            return False
        if self.strict and self.computed():
            return False
        return not any(self.breaks(result) for result in self.results)

    def breaks(self, result: Result) -> bool:
        """Whether this result alone keeps the implementation from conforming at the requested level."""
        left = result.unfinished or result.verdict in {Verdict.BLOCKED, Verdict.NOT_RUN}
        left = left or (self.strict and bool(result.exempted_by))
        return self._binds(result) and (result.verdict.red or left)

    @property
    def wrong(self) -> bool:
        """Whether something else than what was not judged keeps it from conforming."""
        if self.missing or (self.strict and self.computed()):
            return True
        return any(self.breaks(result) and result.verdict is not Verdict.NOT_RUN for result in self.results)

    def accepted(self, result: Result) -> bool:
        """Whether a result keeps the implementation from conforming and a baseline lists it.

        A clause that was blocked and now fails is none of those: nobody has accepted that failure.
        """
        before = (self.known or {}).get(result.clause.id)
        seen = before is not None and (not result.verdict.red or before in _RED)
        return seen and self.breaks(result)

    def fresh(self) -> list[Result]:
        """Return what keeps the implementation from conforming and no baseline lists, failures first.

        Of a run that ended early, what it did not reach is not new.
        """
        found = [result for result in self.results if self.breaks(result) and not self.accepted(result)]
        reached = [result for result in found if self.complete or result.verdict is not Verdict.NOT_RUN]
        return sorted(reached, key=lambda result: not result.verdict.red)

    def outdated(self) -> list[str]:
        """Return the clauses that a baseline lists and that were judged and break nothing now."""
        known = self.known or {}
        return [r.clause.id for r in self.results if r.clause.id in known and not self.breaks(r)]

    @property
    def settled(self) -> bool:
        """Whether there is a baseline and the run was complete and found nothing that it does not list."""
        if self.known is None or not self.complete or self.missing or self.unusable or self.fresh():
            return False
        return not (self.strict and self.computed())

    def computed(self) -> list[Excuse]:
        """Return the declarations that change which numbers are compared."""
        return [excuse for excuse in self.excuses if excuse.arithmetic]

    def exempted(self) -> list[Result]:
        """Return the binding clauses that a declaration took away."""
        return [result for result in self.results if result.exempted_by and self._binds(result)]

    def coverage(self) -> tuple[int, int]:
        """Return how many binding clauses were judged, and how many there are."""
        binding = [result for result in self.results if self._binds(result)]
        left = {Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED, Verdict.NOT_RUN, Verdict.BLOCKED}
        return sum(result.verdict not in left for result in binding), len(binding)

    def _binds(self, result: Result) -> bool:
        return self.level.includes(result.clause.level)

    def ledger(self) -> dict[str, int]:
        """Return the number of clauses with each verdict, and their sum as `clauses`."""
        counts = Counter(result.verdict for result in self.results)
        return {"clauses": len(self.results), **{verdict.value: counts[verdict] for verdict in Verdict}}

    def absent(self) -> tuple[list[str], int]:
        """Return the components and tools of which nothing is judged, and the number of all that were asked for.

        What the declared variant does not need is not asked for.
        """
        verdicts: dict[str, set[Verdict]] = {}
        for result in self.results:
            if not self.unreached(result):
                verdicts.setdefault(result.clause.component, set()).add(result.verdict)
        verdicts.pop("all", None)
        asked = {name: found for name, found in verdicts.items() if found != {Verdict.NOT_APPLICABLE}}
        absent = ({Verdict.NOT_IMPLEMENTED}, {Verdict.NOT_RUN})
        return [name for name, found in asked.items() if found in absent], len(asked)

    def unreached(self, result: Result) -> bool:
        """Whether a clause was not judged because the run had ended: it says nothing about what is there."""
        return bool(self.late) and result.verdict is Verdict.NOT_RUN and result.reason == self.late

    def extents(self) -> Extents:
        """Return the sizes with which components were called, by component."""
        return joined(result.extents for result in self.results)

    def failures(self) -> list[Result]:
        """Return the red results, binding ones first, then in the order of the law."""
        red = [r for r in self.results if r.verdict.red]
        return sorted(red, key=lambda r: not self.breaks(r))
