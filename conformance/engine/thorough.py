"""A clause looked at thoroughly: hypothesis drives its test, finds sizes at which it fails, and makes them small.

The test is the same, and so is the worker. Only what draws is another one: sizes come from hypothesis, numbers from a
seed that it draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from hypothesis import HealthCheck, Phase, Verbosity, assume, given, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable, NotYet
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.size_jitter import AS_ASKED, SizeJitter, size_jitter
from conformkit.conformance.assertions.sizes import Cost, Coverage, Domain
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.scratch import cache_folder
from conformkit.conformance.strategies import sizes
from conformkit.conformance.strategies.arrays import seeds
from conformkit.spec.clauses import Clause

__all__ = ["DRIVEN", "Try", "database", "seek"]

DRIVEN = frozenset({"oracle", "property"})
"""Evidence that more draws strengthen: stored examples are fixed, and statistics have their own numbers of draws."""
Try = Callable[[Draw], None]
"""Runs the test of a clause with these draws."""
_DEAR = 20.0
"""Examples may cost so many times what a case of a default run costs."""


class _Sought(Draw):
    """Draws whose sizes hypothesis chooses."""

    shrinks = True

    def __init__(self, data: st.DataObject, clause: Clause, forms: tuple[str, ...]) -> None:
        seed = data.draw(seeds(), label="seed")
        super().__init__(seed, clause.id, forms, clause.sizes, exact=clause.generates)
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return int(self._data.draw(st.integers(low, high)))

    def size_jitter(self) -> SizeJitter:
        return AS_ASKED if self._exact else size_jitter(self)

    def cases(
        self, domain: Domain, cost: Cost, limit: float, coverage: Coverage = "every band"
    ) -> Iterator[dict[str, int]]:
        del coverage
        case = self._data.draw(sizes(domain), label="sizes")
        assume(cost(case) <= _DEAR * limit)
        yield case


def seek(
    clause: Clause, run: Try, forms: tuple[str, ...], *, examples: int, start: int, stored: ExampleDatabase | None
) -> None:
    """Run the test with so many examples; raise what it raises at the smallest that fails.

    `start` seeds a search without stored examples. Raises NotApplicable if it applies to none of the examples.
    """
    reasons: list[NotApplicable | NotYet | NoSizeError] = []

    @settings(
        max_examples=examples, database=stored, deadline=None, verbosity=Verbosity.quiet, print_blob=False,
        report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(st.data())
    def attempt(data: st.DataObject) -> None:
        try:
            run(_Sought(data, clause, forms))
        except (NotApplicable, NotYet, NoSizeError) as reason:
            reasons.append(reason)
            reject()

    search = attempt if stored is not None else seed(start)(attempt)  # a seeded search reads no stored examples
    try:
        search()
    except Flaky:
        raise ClauseFailure("the same call gives another result when it is repeated") from None
    except Unsatisfiable:
        raise (reasons[0] if reasons else NotApplicable.from_sizes("no example fits its limits")) from None


def database(location: str, clause: Clause) -> ExampleDatabase:
    """Return where failing examples of a clause are kept, in the user's cache, not in the judged folder."""
    own = hashlib.sha256(location.encode()).hexdigest()[:16]
    return DirectoryBasedExampleDatabase(cache_folder() / "examples" / own / clause.id)
