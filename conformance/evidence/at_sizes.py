"""A property at every size of a domain: a few large cases, and where one fails, from which size on.

What refuses a size by an error of its own is given friendlier ones, and what is too slow for a large case gets smaller
ones: neither is a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    NotYet,
    begins_at,
    called,
    remark,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import FOLLOWING, THRESHOLDS, Case, Cost, Coverage, Domain, small
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.evidence.thresholds import Fails, Fits, Smallest, smallest_failing
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.spec.clauses import clause

__all__ = ["LIMIT", "Check", "Nearest", "Pace", "check_at_sizes", "described"]

LIMIT = 6e7
"""Multiplications that a case may cost: some hundredths of a second."""
_SLOW_SECONDS = 3.0
"""A case that takes this long is a hundred times slower than usual: later ones are kept cheaper. Time in which nothing
of the run got a processor is not counted: what is looked at must not depend on other work of the machine."""
_TIMEOUTS_IN_A_ROW, _TIMEOUTS = 3, 6
"""After so many sizes that take longer than a call may, nothing else is tried: each costs the whole time limit."""
_HALVINGS = 6
_SURE = 4
"""So many failing attempts show that a check does not fail by chance."""
_MORE = (4, 12)
"""Attempts for each size where it does."""
_TOO_MUCH = frozenset({"timeout", "memory"})
_SHORT: Mapping[str, str] = {"tokens": "T", "keys": "Tk", "batch": "B"}

Check = Callable[[Case], None]
"""Compares at some sizes. Raises ClauseFailure, or what the implementation raised."""
Nearest = Callable[[Case], dict[str, int]]
"""The sizes within the limits that are nearest to some. Raises NoSizeError."""


class Pace:
    """How much a case may cost: less once one took long, so that what is slow is judged at smaller sizes.

    `slow` is the number of seconds that is long.
    """

    def __init__(self, slow: float = _SLOW_SECONDS) -> None:
        self._most, self._slow = float("inf"), slow

    def allows(self, cost: float) -> bool:
        """Whether a case of this cost may be tried."""
        return cost < self._most

    def took(self, seconds: float, cost: float) -> None:
        """Take notice of how long a case of this cost took."""
        if seconds > self._slow:
            self._most = min(self._most, cost / 2, cost * self._slow / seconds)

    @contextmanager
    def measuring(self, clock: Callable[[], float], cost: float) -> Iterator[None]:
        """Take notice of how long it takes in this context to try a case of this cost, however it ends."""
        started = clock()
        try:
            yield
        finally:
            self.took(clock() - started, cost)


class _Refused(Exception):
    """The implementation does not take these sizes, and says so by itself, or it is too slow for them."""


@dataclass
class _Trials:
    """The outcomes of a check, by sizes."""

    check: Check
    renew: Callable[[], None]
    draw: Draw
    known: dict[tuple[tuple[tuple[str, int], ...], int], Exception | None] = field(default_factory=dict)
    attempts: int = 1
    """How often sizes are tried, each time with other draws, before they count as right."""
    spare: int = 160
    """Attempts besides the first ones that may still be made: a suspect of the diagnosis makes as many."""
    timeouts: int = 0
    """How many sizes took longer than a call may."""
    timeouts_in_a_row: int = 0
    """How many of them since the last one that did not."""

    def fails(self, sizes: Case, attempt: int = 0) -> bool:
        """Whether the check fails. Raises _Refused."""
        key = tuple(sorted(sizes.items())), attempt
        if key not in self.known:
            with self.draw.attempting(attempt):
                self.known[key] = self._tried(sizes)
        found = self.known[key]
        if isinstance(found, _Refused):
            raise found
        return found is not None

    def wrong(self, sizes: Case) -> bool:
        """Whether the check fails; what is refused does not."""
        return self.failing_attempt(sizes, self.attempts) is not None

    def failing_attempt(self, sizes: Case, attempts: int, first: int = 0) -> int | None:
        """Return the first of so many attempts that fails; None if none does, or if the sizes are refused."""
        with suppress(_Refused):
            for attempt in range(first, first + attempts):
                self.spare -= attempt > 0
                if attempt and self.spare < 0:
                    break
                if self.fails(sizes, attempt):
                    return attempt
        return None

    def always_fails(self, sizes: Case) -> bool:
        """Whether sizes that fail do so in further attempts too, as long as these don't take long."""
        for attempt in range(1, _SURE):
            started = self.draw.clock()
            if self.failing_attempt(sizes, 1, attempt) is None:
                return False
            if self.draw.clock() - started > _SLOW_SECONDS / _SURE:
                break
        return True

    def failure(self, sizes: Case) -> Exception:
        """Check once more what is wrong, and return how it fails."""
        try:
            self.again(sizes)
        except (ClauseFailure, ImplementationFailure, WorkerLost) as failure:
            return failure
        return ClauseFailure("the same call gives another result when it is repeated")

    def again(self, sizes: Case) -> None:
        """Check once more, so that this is the last thing that happened."""
        under(Setting("", {_SHORT.get(name, name): size for name, size in sizes.items()}, found=True))
        self.check(sizes)

    def _tried(self, sizes: Case) -> Exception | None:
        if self._too_many_timeouts:
            return _Refused("others took longer than a call may")
        try:
            self.again(sizes)
            self.timeouts_in_a_row = 0
        except (ClauseFailure, ImplementationFailure, WorkerLost) as failure:
            if isinstance(failure, WorkerLost):
                self._note_lost(failure)
            return _Refused(str(failure)) if _is_refusal(failure) else failure
        except NoSizeError as none:
            return _Refused(str(none))
        return None

    def _note_lost(self, lost: WorkerLost) -> None:
        self.renew()
        if lost.kind == "timeout":
            self.timeouts += 1
            self.timeouts_in_a_row += 1
            if self._too_many_timeouts:
                own = self.draw.clause_id
                remark(f"{own}: {self.timeouts} sizes took longer than a call may, so no others were tried")

    @property
    def _too_many_timeouts(self) -> bool:
        return self.timeouts_in_a_row >= _TIMEOUTS_IN_A_ROW or self.timeouts >= _TIMEOUTS


def check_at_sizes(
    draw: Draw, check: Check, cost: Cost, nearest: Nearest, *, after: str, limit: float = LIMIT,
    domain: Domain | None = None, coverage: Coverage = "every band", following: Sequence[str] = FOLLOWING,
    renew: Callable[[], None] = lambda: None, pace: Pace | None = None,
) -> None:  # fmt: skip
    """Check at sizes that cover the clause's domain; raise the smallest failure, with the size at which it begins.

    `cost` says how many multiplications a case needs; `nearest` makes sizes go together and keeps them within limits.
    `after` is the clause about small sizes: what fails there is its finding, unless it passes. Sizes that are
    `following` grow as others need it. `renew` is called when the worker was lost, and with it every object in it.
    Several checks of a clause share a `pace`.
    """
    domain = domain or draw.domain
    trials, pace = _Trials(check, renew, draw), pace or Pace()
    held, beyond = 0, False
    for case in draw.cases(domain, lambda sizes: _cost(sizes, cost, nearest), limit, coverage):
        accepted = next(_accepted(case, domain, trials, nearest, cost, pace), None)
        if accepted is None:
            continue
        held += 1
        _note(draw, accepted)
        beyond = beyond or any(size > THRESHOLDS[name][0] for name, size in accepted.items() if name in THRESHOLDS)
        if trials.wrong(accepted):
            for smallest in _small(domain, nearest):
                if trials.wrong(smallest):
                    raise NotYet(after, trials.failure(smallest))
            _explain(trials, accepted, domain, nearest, following, shrunk=draw.shrinks)
    if not held:
        raise NotApplicable.from_sizes("none of the sizes that are drawn is accepted: all are refused, or too slow")
    if not beyond and not draw.shrinks:
        raise NotApplicable.from_sizes(
            f"its [limits], or what it refuses, leave only small sizes{_at_most(domain, nearest)}"
        )


def _note(draw: Draw, sizes: Case) -> None:
    """Note sizes that were tried; those of clauses about every component are noted where each is called."""
    name = clause(draw.clause_id).component
    if name != "all":
        called(name, sizes)


def _small(domain: Domain, nearest: Nearest) -> Iterator[dict[str, int]]:
    """Yield the largest of the small sizes, and the smallest, where there are any."""
    for which in (1, 0):
        with suppress(NoSizeError):
            yield nearest({name: small(name, domain)[which] for name in domain})


def described(sizes: Case) -> str:
    """Return `T = 257, num_heads = 3`."""
    return ", ".join(f"{_SHORT.get(name, name)} = {size}" for name, size in sizes.items())


def _at_most(domain: Domain, nearest: Nearest) -> str:
    """Return `: at most T = 9, B = 4`, the largest sizes within its limits."""
    try:
        return f": at most {described(nearest({name: high for name, (_, high) in domain.items()}))}"
    except NoSizeError:
        return ""


def _accepted(
    case: Case, domain: Domain, trials: _Trials, nearest: Nearest, cost: Cost, pace: Pace
) -> Iterator[dict[str, int]]:
    """Yield the sizes near this case that the implementation takes, the nearest first.

    After sizes that take longer than a call may, those are tried whose largest is at most half as large.
    """
    most = float("inf")
    for wanted in _friendlier(dict(case), domain):
        timeouts, sizes = trials.timeouts, dict[str, int]()
        try:
            sizes = nearest(wanted)
            if max(sizes.values(), default=0) <= most and pace.allows(cost(sizes)):
                with pace.measuring(trials.draw.clock, cost(sizes)):
                    trials.fails(sizes)
                yield sizes
        except (_Refused, NoSizeError):
            if trials.timeouts > timeouts:
                most = max(sizes.values()) / 2


def _friendlier(case: dict[str, int], domain: Domain) -> Iterator[dict[str, int]]:
    """Yield a case, the same in multiples of 8 and in powers of two, then with its largest sizes halved."""
    yield case
    yield {name: _within(size // 8 * 8 if size > 8 else _power(size), domain[name]) for name, size in case.items()}
    even = {name: _within(_power(size), domain[name]) for name, size in case.items()}
    for _ in range(_HALVINGS):
        yield even
        largest = max(even, key=lambda name: even[name])
        even = {**even, largest: _within(even[largest] // 2, domain[largest])}


def _power(size: int) -> int:
    return 1 << max(size.bit_length() - 1, 0)


def _within(size: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(size, bounds[1]))


def _is_refusal(failure: Exception) -> bool:
    if isinstance(failure, WorkerLost):
        return failure.kind in _TOO_MUCH
    if isinstance(failure, ImplementationFailure):
        return failure.kind == "memory" or is_refusal(failure)
    return False


def _cost(sizes: Case, cost: Cost, nearest: Nearest) -> float:
    try:
        return cost(nearest(sizes))
    except NoSizeError:
        return cost(sizes)


def _explain(
    trials: _Trials, failing: Case, domain: Domain, nearest: Nearest, following: Sequence[str], *, shrunk: bool
) -> None:
    """Raise the failure at the smallest sizes, and note which pattern the failing ones follow."""
    if shrunk:
        trials.again(failing)

    def fitting(sizes: Case) -> dict[str, int] | None:
        with suppress(NoSizeError):
            found = nearest(sizes)
            if all(found[name] == sizes[name] for name in sizes if name not in following):
                return found
        return None

    def fits(sizes: Case) -> bool:
        return fitting(sizes) is not None

    def wrong(sizes: Case) -> bool:
        found = fitting(sizes)
        return found is not None and trials.wrong(found)

    found = _surely(trials, failing, fits, wrong, domain, nearest)
    begins_at(found.threshold)
    sizes = nearest(found.sizes)
    with trials.draw.attempting(trials.failing_attempt(sizes, trials.attempts) or 0):
        trials.again(sizes)
    raise ClauseFailure("the same call gives another result when it is repeated")


def _surely(trials: _Trials, failing: Case, fits: Fits, wrong: Fails, domain: Domain, nearest: Nearest) -> Smallest:
    """Return the smallest failing sizes, searched with more attempts as long as passing ones fail by chance.

    What depends on numbers that are drawn, such as a text that seldom needs the key that is lost, fails now and then.
    """
    if clause(trials.draw.clause_id).generates or not trials.always_fails(failing):
        trials.attempts = _MORE[0]
    found = smallest_failing(wrong, fits, failing, domain)
    for attempts in _MORE:
        tries = max(_SURE, 2 * trials.attempts)
        passing = [nearest(sizes) for sizes in (found.right, found.beyond) if sizes is not None]
        by_chance = next((sizes for sizes in passing if trials.failing_attempt(sizes, tries) is not None), None)
        if by_chance is None:
            break
        trials.attempts = max(attempts, tries)
        found = smallest_failing(wrong, fits, by_chance, domain)
    return found
