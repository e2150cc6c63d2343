"""Which defects the verdicts leave possible. Nothing is run for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformkit.conformance.defects import COMMON, Defect, defects
from conformkit.conformance.results import Result, Verdict
from conformkit.spec.variants import Variant

__all__ = ["suspects"]


def suspects(results: Iterable[Result], variant: Variant) -> list[Defect]:
    """Return the defects that could be behind the red clauses, the most plausible first.

    Whoever has a defect breaks every clause that it is known to break: one of those green acquits.
    """
    verdicts = {result.clause.id: result.verdict for result in results}
    found = [d for d in defects().values() if _fits(d, variant) and _possible(d, verdicts)]
    return sorted(found, key=lambda d: (-_explained(d, verdicts), COMMON.index(d.common), d.id))


def _fits(defect: Defect, variant: Variant) -> bool:
    """A defect of some variant takes an implementation of that variant."""
    return all(getattr(variant, name) == value for name, value in defect.variant.differences().items())


def _possible(defect: Defect, verdicts: Mapping[str, Verdict]) -> bool:
    named = [verdicts[name] for name in defect.clauses if name in verdicts]
    return any(verdict.red for verdict in named) and Verdict.PASS not in named


def _explained(defect: Defect, verdicts: Mapping[str, Verdict]) -> int:
    return sum(name in verdicts and verdicts[name].red for name in defect.clauses)
