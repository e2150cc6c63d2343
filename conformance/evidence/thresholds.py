"""The smallest sizes at which something fails, and what distinguishes them from those at which it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from conformkit.conformance.assertions.sizes import FOLLOWING, Case, Domain, small
from conformkit.conformance.evidence.related_sizes import Related, equal, related
from conformkit.conformance.findings.threshold import Pattern, Threshold

__all__ = ["Fails", "Fits", "Smallest", "smallest_failing"]

_FEW_HEADS = (1, 2, 3, 4)
"""A head is not as wide as the widest models are: those need three."""
Fails = Callable[[Case], bool]
Fits = Callable[[Case], bool]
"""Whether sizes can be judged: of those that cannot, nothing is said."""
_NEARBY = 64
_DISTANCES = (2, 3, 5, 6)
_DIVISORS = (2, 3, 5)


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest failing sizes, and which pattern the failing ones follow."""

    sizes: Case
    threshold: Threshold
    right: Case | None = None
    """The sizes just below, which do not fail, where they were tried."""
    beyond: Case | None = None
    """The sizes just above, if they do not fail either."""


def smallest_failing(wrong: Fails, fits: Fits, failing: Case, domain: Domain) -> Smallest:
    """Make each size as small as it can be while it still fails, and say where it begins to fail."""
    found = _small_where_it_does_not_matter(wrong, dict(failing), domain)
    matter = [name for name in found if found[name] > small(name, domain)[1]]
    if {"num_heads", "head_width"} <= found.keys() and {"num_heads", "head_width"} & set(matter):
        by_width = _by_width(wrong, fits, found, domain)
        if by_width is not None:
            return by_width
    if len(matter) == 2:
        low = max(small(name, domain)[1] for name in matter)
        both = equal(wrong, found, (matter[0], matter[1]), low)
        if both is not None:
            return _of_two(both)
    parts = []
    for name in matter:
        parts.append(_first(wrong, fits, found, name, domain))
        found = dict(parts[-1].sizes)
    if len(parts) in {1, 2}:
        others = [name for name in found if name not in matter] if len(parts) == 1 else matter[:1]
        relation = _with_another(wrong, fits, parts[-1], matter[-1], others, domain)
        if relation is not None:
            return relation
    if len(parts) == 1:
        return parts[0]
    least = None if parts else _least(wrong, found, domain)
    if least is not None:
        return least
    return Smallest(found, _all_of([part.threshold for part in parts]) or Threshold(Pattern.THESE))


def _of_two(found: Related) -> Smallest:
    return Smallest(found.sizes, found.threshold, found.right)


def _all_of(thresholds: Sequence[Threshold]) -> Threshold | None:
    """Return thresholds of several sizes as one; None of none."""
    together = None
    for threshold in reversed(thresholds):
        together = replace(threshold, further=together)
    return together


def _least(wrong: Fails, found: dict[str, int], domain: Domain) -> Smallest | None:
    """Return the threshold where it fails at a size that is less than small ones are, such as a single query."""
    for name, size in found.items():
        usual = small(name, domain)[0]
        if size < usual and not wrong({**found, name: usual}):
            above = next((more for more in range(size + 1, usual) if not wrong({**found, name: more})), usual)
            return Smallest(found, Threshold(Pattern.SMALL, (name,), "", size, None, above), {**found, name: above})
    return None


def _with_another(
    wrong: Fails, fits: Fits, found: Smallest, name: str, others: Sequence[str], domain: Domain
) -> Smallest | None:
    """Return what decides together with a size, if one of some others does."""
    pattern = found.threshold.pattern
    if found.right is None or pattern not in {Pattern.FROM, Pattern.ALONE}:
        return None
    relation = related(wrong, fits, found.sizes, name, others, domain, alone=pattern is Pattern.ALONE)
    return _of_two(relation) if relation is not None else None


def _small_where_it_does_not_matter(wrong: Fails, failing: dict[str, int], domain: Domain) -> dict[str, int]:
    """Replace each size by a small one if it still fails."""
    for name in sorted(failing, key=lambda name: (name in FOLLOWING, -failing[name])):
        for least in dict.fromkeys(small(name, domain)[::-1]):
            smaller = {**failing, name: min(least, failing[name])}
            if smaller != failing and wrong(smaller):
                failing = smaller
                break
    return failing


def _first(wrong: Fails, fits: Fits, failing: dict[str, int], name: str, domain: Domain) -> Smallest:
    """Return the sizes with the first value of one of them at which it fails."""
    low = small(name, domain)[1]
    passing = low
    for value in _ladder(low, failing[name]):
        if wrong({**failing, name: value}):
            at = partial(_with, failing, name)
            first = _divided(_of_one(wrong, at), _bisected(_of_one(wrong, at), _of_one(fits, at), passing, value), low)
            below, above = _beside(_of_one(fits, at), first, domain[name])
            if below is not None and wrong(at(below)):  # there are gaps between the sizes that can be judged
                below = None
            threshold = _pattern(_of_one(wrong, at), name, first, domain, (below, above))
            beyond = None if above is None or wrong(at(above)) else at(above)
            return Smallest(at(first), threshold, None if below is None else at(below), beyond)
        passing = value
    raise AssertionError("the last step of the ladder is the failing size itself")


def _of_one(judge: Fails, at: Callable[[int], dict[str, int]]) -> Callable[[int], bool]:
    """Return a judgement of one size, the others being fixed."""
    return lambda size: judge(at(size))


def _with(sizes: dict[str, int], name: str, size: int) -> dict[str, int]:
    return {**sizes, name: size}


def _beside(fits: Callable[[int], bool], first: int, ends: tuple[int, int]) -> tuple[int | None, int | None]:
    """Return the nearest values below and above one that can be judged; None where there is none nearby."""
    below = range(first - 1, max(ends[0], first - _NEARBY) - 1, -1)
    above = range(first + 1, min(ends[1], first + _NEARBY) + 1)
    return next(filter(fits, below), None), next(filter(fits, above), None)


def _ladder(low: int, high: int) -> Iterator[int]:
    """Yield powers of two and their successors between low and high, and high."""
    power = 1
    while power <= high:
        yield from (value for value in (power, power + 1) if low < value < high)
        power *= 2
    yield high


def _bisected(wrong: Callable[[int], bool], fits: Callable[[int], bool], passing: int, failing: int) -> int:
    """Return the first failing value between a passing and a failing one, of those that can be judged."""
    while failing - passing > 1:
        middle = next(filter(fits, _outwards((passing + failing) // 2, passing, failing)), None)
        if middle is None:
            break
        if wrong(middle):
            failing = middle
        else:
            passing = middle
    return failing


def _outwards(half: int, passing: int, failing: int) -> Iterator[int]:
    """Yield what lies between two sizes, what is nearest to the middle first."""
    yield half
    for distance in range(1, failing - passing):
        yield from (size for size in (half - distance, half + distance) if passing < size < failing)


def _divided(wrong: Callable[[int], bool], first: int, low: int) -> int:
    """Return the least part of a size that fails, too: a bisection does not find the first of many multiples."""
    parts = (first // divisor for divisor in _DIVISORS if not first % divisor and first // divisor > low)
    smaller = next(filter(wrong, parts), None)
    return first if smaller is None else _divided(wrong, smaller, low)


def _pattern(
    wrong: Callable[[int], bool], name: str, first: int, domain: Domain, beside: tuple[int | None, int | None]
) -> Threshold:
    """Return whether it fails from a value on, at its multiples, or there alone, by the nearest values judged."""
    most = domain[name][1]
    below, above = beside
    found = Threshold(Pattern.ALONE, (name,), "", first, below, above)
    if below is None:
        return replace(found, pattern=Pattern.SOMEWHERE)
    if above is None or wrong(above):
        return replace(found, pattern=Pattern.FROM, step=below if _but_multiples(wrong, below, most) else 0)
    step = _step(wrong, first, most)
    if step is not None:
        return replace(found, pattern=Pattern.ODD if first % step else Pattern.MULTIPLES, step=step)
    others = (*(first + distance for distance in _DISTANCES), (first + most) // 2, 2 * first + 1, most)
    if any(wrong(size) for size in others if size <= most and size != first):
        return replace(found, pattern=Pattern.SCATTERED)
    return found


def _but_multiples(wrong: Callable[[int], bool], last: int, most: int) -> bool:
    """Whether the multiples of the last right size are right, too, and what comes after them is not."""
    multiples = [size for size in (2 * last, 3 * last) if last > 1 and size <= most]
    return bool(multiples) and not any(map(wrong, multiples)) and all(wrong(size + 1) for size in multiples[:1])


def _step(wrong: Callable[[int], bool], first: int, most: int) -> int | None:
    """Return the distance at which it is wrong again and again after a first size, and not between; None at none."""
    powers = [1 << power for power in range(1, first.bit_length()) if not first % (1 << power)]
    for step in sorted({2, *powers, first}):
        again = [size for size in (first + step, first + 2 * step, first + 3 * step) if size <= most]
        if len(again) > (step not in powers) and all(wrong(size) for size in again):
            return None if any(wrong(size + max(step // 2, 1)) for size in again) else step
    return None


def _by_width(wrong: Fails, fits: Fits, failing: dict[str, int], domain: Domain) -> Smallest | None:
    """Find out whether d_model or the width of a head matters; None if the number of heads does.

    With one head both are the same number: where it fails first is the threshold, and more heads of the same total
    width tell which of the two it is. What goes wrong between heads shows with two, and what a head is too narrow
    for with more.
    """
    heads, width = failing["num_heads"], failing["head_width"]
    for few in _FEW_HEADS:
        for wide in dict.fromkeys((width, heads * width // few)):
            sizes = {**failing, "num_heads": few, "head_width": min(wide, domain["head_width"][1])}
            if few >= domain["num_heads"][0] and wrong(sizes):
                return _width_with(wrong, fits, sizes, domain)
    return None


def _width_with(wrong: Fails, fits: Fits, failing: dict[str, int], domain: Domain) -> Smallest:
    """Return the threshold of d_model or of the width of a head, for few heads."""
    heads = failing["num_heads"]
    by_head = _first(wrong, fits, failing, "head_width", domain)
    found = dict(by_head.sizes)
    first = found["head_width"]
    split = {**found, "num_heads": 2 * heads, "head_width": -(-first // 2)}
    if 2 * heads > domain["num_heads"][1] or not wrong(split):
        return by_head
    if heads > 1:
        return _between(wrong, fits, by_head, domain)
    most = domain["head_width"][1]

    def wrong_in_all(d_model: int) -> bool:
        return wrong({**found, "head_width": d_model})

    threshold = _pattern(wrong_in_all, "d_model", first, {"d_model": (1, most)}, (first - 1, first + 1))
    return Smallest(found, threshold, by_head.right)


def _between(wrong: Fails, fits: Fits, found: Smallest, domain: Domain) -> Smallest:
    """Return the threshold of d_model where a few heads leave gaps: other numbers of heads have the widths between."""
    sizes = dict(found.sizes)
    heads, total = sizes["num_heads"], sizes["num_heads"] * sizes["head_width"]
    right, below, first = found.right, total - heads, total
    (fewest, most), (narrowest, widest) = domain["num_heads"], domain["head_width"]
    for width in range(total - heads + 1, total):
        ways = [n for n in range(fewest, most + 1) if not width % n and narrowest <= width // n <= widest]
        cases = ({**sizes, "num_heads": number, "head_width": width // number} for number in ways)
        case = next(filter(fits, cases), None)
        if case is None:
            continue
        if wrong(case):
            sizes, first = case, width
            break
        right, below = case, width
    return Smallest(sizes, Threshold(Pattern.FROM, ("d_model",), "", first, below), right)
