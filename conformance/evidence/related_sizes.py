"""Whether a size begins to fail by itself, or together with another one: as a product, a sum, or a difference.

Code splits rows of a batch by positions, keeps a cache for prompt and new ids, or confuses two lengths where they are
equal. With the other size at some small number all of that looks like a threshold of one size; another number of it
tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from conformkit.conformance.assertions.sizes import Case, Domain
from conformkit.conformance.findings.threshold import Pattern, Threshold

__all__ = ["Related", "equal", "related"]

Judge = Callable[[Case], bool]
_STEP = 3
"""How much another size is changed to see whether it matters."""
_SHIFTS = (1, 5)
"""By how much two sizes are changed together."""


@dataclass(frozen=True, slots=True)
class Related:
    """Sizes that fail, the nearest ones that do not, and what relates them."""

    sizes: Case
    right: Case
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class _Pair:
    """A size, `first` where it begins to fail, and another one."""

    wrong: Judge
    right: Judge
    found: Case
    domain: Domain
    name: str
    other: str

    @property
    def first(self) -> int:
        return self.found[self.name]

    @property
    def beside(self) -> int:
        return self.found[self.other]

    def at(self, size: int, other: int) -> Case:
        return {**self.found, self.name: size, self.other: other}

    def inside(self, size: int, other: int) -> bool:
        """Whether both are within the domain."""
        pairs = ((self.name, size), (self.other, other))
        return all(self.domain[name][0] <= value <= self.domain[name][1] for name, value in pairs)

    @property
    def names(self) -> tuple[str, str]:
        """Return both names in the order of the domain, where the order does not matter."""
        one, other = sorted((self.name, self.other), key=list(self.domain).index)
        return one, other


def related(
    wrong: Judge, fits: Judge, found: Case, name: str, others: Sequence[str], domain: Domain, *, alone: bool
) -> Related | None:
    """Return how one of some other sizes decides with this one where it begins to fail; None where none does.

    `alone` says that it fails there only, not from there on.
    """

    def right(sizes: Case) -> bool:
        return fits(sizes) and not wrong(sizes)

    for other in others:
        pair = _Pair(wrong, right, found, domain, name, other)
        if not _indifferent(pair):
            ways = (_difference,) if alone else (_product, _difference, _sum)
            for way in ways:
                relation = way(pair, alone=alone)
                if relation is not None:
                    return relation
    return None


def equal(wrong: Judge, found: Case, names: tuple[str, str], low: int) -> Related | None:
    """Return from which size on two sizes fail that are equal, and only then; None where that is not so."""
    one, other = names
    size = found[one]
    if found[other] != size or any(wrong({**found, name: size - 1}) for name in names):
        return None
    passing, failing = low, size
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if wrong({**found, one: middle, other: middle}):
            failing = middle
        else:
            passing = middle
    sizes, right = ({**found, one: both, other: both} for both in (failing, passing))
    return Related(sizes, right, Threshold(Pattern.FROM, names, "=", failing, passing))


def _indifferent(pair: _Pair) -> bool:
    """Whether it begins to fail at the same size with another number of the other one."""
    another = pair.beside + _STEP if pair.inside(pair.first, pair.beside + _STEP) else pair.beside - _STEP
    if not pair.inside(pair.first, another):
        return pair.domain[pair.other][0] == pair.domain[pair.other][1]
    return pair.wrong(pair.at(pair.first, another)) and pair.right(pair.at(pair.first - 1, another))


def _product(pair: _Pair, *, alone: bool) -> Related | None:
    """Both multiplied: rows of a batch and positions, rows and heads."""
    del alone
    least, most = (pair.first - 1) * pair.beside, pair.first * pair.beside  # the last right product lies between
    if pair.beside == pair.domain[pair.other][0] == 1 or not _confirmed(pair, least, most):
        return None
    passing, failing = least, most
    while failing - passing > 1:
        between = [p for p in range(passing + 1, failing) if next(_factors(pair, p), None)]
        if not between:
            break
        middle = between[len(between) // 2]
        if pair.wrong(pair.at(*next(_factors(pair, middle)))):
            failing = middle
        else:
            passing = middle
    sizes, right = (pair.at(*next(_factors(pair, product))) for product in (failing, passing))
    return Related(sizes, right, Threshold(Pattern.FROM, pair.names, "×", failing, passing))


def _confirmed(pair: _Pair, least: int, most: int) -> bool:
    """Whether it fails at the same product when one of two sizes is much smaller."""
    for other in (pair.domain[pair.other][0], max(pair.beside // 2, 1)):
        if other < pair.beside and pair.inside(-(-most // other), other) and least // other >= pair.first:
            return pair.wrong(pair.at(-(-most // other), other)) and pair.right(pair.at(least // other, other))
    for size in (pair.domain[pair.name][0], pair.first // 4, pair.first // 2):
        if 0 < size < pair.first and pair.inside(size, -(-most // size)) and least // size > pair.beside:
            return pair.wrong(pair.at(size, -(-most // size))) and pair.right(pair.at(size, least // size))
    return False


def _factors(pair: _Pair, product: int) -> Iterator[tuple[int, int]]:
    """Yield sizes of this product within the domain, the other one as small as can be first."""
    low, high = pair.domain[pair.other]
    for other in range(max(low, 1), min(high, product) + 1):
        if not product % other and pair.inside(product // other, other):
            yield product // other, other


def _difference(pair: _Pair, *, alone: bool) -> Related | None:
    """One larger than the other, or than a multiple of it, by some number; or just as large."""
    last = pair.first if alone else pair.first - 1
    for ratio in dict.fromkeys((1, *([last // pair.beside] if pair.beside and not last % pair.beside else []))):
        if ratio and _moves(pair, ratio, alone=alone):
            return Related(pair.found, pair.at(pair.first - 1, pair.beside), _compared(pair, ratio, last, alone=alone))
    return None


def _moves(pair: _Pair, ratio: int, *, alone: bool) -> bool:
    """Whether the size at which it fails moves when the other one does, so many times as far."""
    for shift in _SHIFTS:
        now, other = pair.first + ratio * shift, pair.beside + shift
        before = pair.first if alone else now - 1
        if not pair.inside(now, other) or not pair.wrong(pair.at(now, other)) or not pair.right(pair.at(before, other)):
            return False
    return True


def _compared(pair: _Pair, ratio: int, last: int, *, alone: bool) -> Threshold:
    """Return that T is larger than 2 × Tk + 1, or equals it."""
    pattern = Pattern.EQUAL if alone else Pattern.LARGER
    return Threshold(pattern, (pair.name, pair.other), ratio=ratio, more=last - ratio * pair.beside)


def _sum(pair: _Pair, *, alone: bool) -> Related | None:
    """Both together: a prompt and what is new."""
    del alone
    for shift in _SHIFTS:
        now, other = pair.first - shift, pair.beside + shift
        if not pair.inside(now - 1, other):
            return None
        if not pair.wrong(pair.at(now, other)) or not pair.right(pair.at(now - 1, other)):
            return None
    whole = pair.first + pair.beside
    threshold = Threshold(Pattern.FROM, pair.names, "+", whole, whole - 1)
    return Related(pair.found, pair.at(pair.first - 1, pair.beside), threshold)
