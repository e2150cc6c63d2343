"""Several implementations under the same clauses, on the same inputs, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.json_text import packaged_schema
from conformkit.conformance.report.wording import in_order, verdict_line
from conformkit.conformance.text import one_line
from conformkit.conformance.versions import SPEC_VERSION, kit_version
from conformkit.spec.clauses import Clause

__all__ = ["SCHEMA", "ClauseRow", "Column", "Comparison", "as_object", "schema"]

SCHEMA = "conformkit.comparison/1"


@dataclass(frozen=True, slots=True)
class Column:
    """One implementation: its report, or why there is none."""

    name: str
    report: Report | None = None
    problem: str = ""

    @property
    def line(self) -> str:
        """The verdict, in a sentence."""
        return verdict_line(self.report) if self.report is not None else f"{one_line(self.name)}: {self.problem}"

    @property
    def judged(self) -> bool:
        """Whether there is a report, and nothing that was asked for could not be judged."""
        return self.report is not None and not self.report.unusable

    @property
    def conforms(self) -> bool:
        """Whether there is a report, and it conforms."""
        return self.report is not None and self.report.conforms


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """One clause, and its verdict in each column; None if it was not judged."""

    clause: Clause
    verdicts: tuple[Verdict | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the columns that have a verdict disagree."""
        return len({verdict for verdict in self.verdicts if verdict is not None}) > 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """All columns; the settings of the comparison come from their reports."""

    columns: tuple[Column, ...]

    def rows(self, *, everything: bool = False) -> list[ClauseRow]:
        """Return a row for each clause on which they differ, or for every clause, in the order of the law."""
        found = [ClauseRow(clause, tuple(self._verdicts(clause.id))) for clause in self._clauses()]
        return [row for row in found if everything or row.differs]

    def worse(self) -> list[Clause]:
        """Return the clauses that keep the first one from conforming, and that another passes."""
        first = self.columns[0].report
        if first is None:
            return []
        broken = {result.clause.id for result in first.results if first.breaks(result)}
        return [row.clause for row in self.rows() if row.clause.id in broken and Verdict.PASS in row.verdicts[1:]]

    @property
    def mixed(self) -> tuple[str, ...]:
        """Settings in which the reports differ: profile, level, seed, clauses."""
        reports = [column.report for column in self.columns if column.report is not None]
        facts: Mapping[str, list[Any]] = {
            "profile": [r.profile for r in reports], "level": [r.level for r in reports],
            "seed": [r.seed for r in reports], "clauses": [{x.clause.id for x in r.results} for r in reports],
        }  # fmt: skip
        return tuple(name for name, values in facts.items() if any(value != values[0] for value in values))

    def _clauses(self) -> list[Clause]:
        """Return the clauses of all reports, each report's in its own order, that of its version of the law."""
        found: dict[str, Clause] = {}
        for column in self.columns:
            found |= {r.clause.id: r.clause for r in in_order(column.report)} if column.report else {}
        return list(found.values())

    def _verdicts(self, clause_id: str) -> Iterator[Verdict | None]:
        for column in self.columns:
            results: Sequence[Any] = column.report.results if column.report else ()
            yield next((r.verdict for r in results if r.clause.id == clause_id), None)


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for machines: all clauses, and whether the implementations differ on each."""
    return {
        "schema": SCHEMA, "kit": kit_version(), "spec": SPEC_VERSION, "mixed": list(comparison.mixed),
        "worse": [clause.id for clause in comparison.worse()],
        "implementations": [
            {"name": one_line(column.name), "conforms": column.conforms, "problem": one_line(column.problem),
             "verdict": one_line(column.line, 2000), "ledger": column.report.ledger() if column.report else {}}
            for column in comparison.columns
        ],
        "clauses": [
            {"id": row.clause.id, "title": row.clause.title, "level": row.clause.level.value,
             "component": row.clause.component, "differs": row.differs,
             "verdicts": [verdict.value if verdict is not None else None for verdict in row.verdicts]}
            for row in comparison.rows(everything=True)
        ],
    }  # fmt: skip


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every comparison satisfies."""
    return packaged_schema(__package__, "comparison")
