"""Sizes at which a clause is checked: drawn within the domain that it states, beyond every usual threshold.

Mistakes that depend on size begin where people make tables, fast paths and chunks: at powers of two. A domain is
therefore cut into bands between such marks, and a few cases together have a size in each band. One case is large in
few ways, so that it stays cheap and a failure points at what matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

__all__ = ["FOLLOWING", "THRESHOLDS", "Band", "Case", "Cost", "Domain", "Integers", "bands", "covering", "small"]

Case = Mapping[str, int]
"""The size of each name at which something is checked."""
Domain = Mapping[str, tuple[int, int]]
"""By name of a size, the least and the largest."""
Band = tuple[int, int]
Item = TypeVar("Item")
Cost = Callable[[Case], float]


class Integers(Protocol):
    """Whatever draws integers."""

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""


_LENGTHS = (64, 128, 256, 512)
_WIDTHS = (64, 128, 256)
_HEAD_WIDTHS = (32, 64, 128)
_COUNTS = (256, 1000)
THRESHOLDS: Mapping[str, tuple[int, ...]] = {
    "batch": (16,), "num_heads": (8, 12), "num_layers": (4,), "num_encoder_layers": (4,), "num_decoder_layers": (4,),
    "d_model": _WIDTHS, "d_ff": (64, 256, 1024), "head_width": _HEAD_WIDTHS, "d_k": _HEAD_WIDTHS, "d_v": _HEAD_WIDTHS,
    "tokens": _LENGTHS, "keys": _LENGTHS, "block_size": _LENGTHS, "max_len": _LENGTHS,
    "vocab_size": _COUNTS, "src_vocab_size": _COUNTS, "tgt_vocab_size": _COUNTS, "top_k": (50,), "beams": (4,),
    "new_ids": (32,),
    "prompt": _LENGTHS, "count": (256, 10_000), "symbols": (64, 256, 1000), "batches": (10, 50), "parameters": (16,),
    "rows": _WIDTHS, "columns": _WIDTHS, "updates": (16, 50), "step": (1000, 10_000), "warmup": (1000,),
}  # fmt: skip
"""Sizes after which a case is needed, by name."""
_USUAL: Mapping[str, tuple[int, ...]] = {"head_width": (48, 80, 96, 256)}
"""Further sizes that many models have."""
_INNER = 4
"""How many times wider than a model its feed-forward network usually is: a fast path may be written for that."""
_STEPS = 1 << 12
_ROUND = 16
"""Widths are often multiples of it."""
FOLLOWING = ("block_size", "max_len")
"""Sizes that are at least as large as another one, the number of positions."""
_CHUNKED = frozenset({"tokens", "keys"})
"""Where chunks are cut, one mark is a band of its own: the last chunk is then a whole one, or empty."""
_EXACT = frozenset({"head_width", "d_k", "d_v", "d_model", "num_heads"})
"""Where fast paths are written for single sizes, each mark is a band of its own."""
_SMALL: Mapping[str, Band] = {
    "batch": (1, 2), "num_heads": (2, 3), "num_layers": (1, 2), "num_encoder_layers": (1, 2),
    "num_decoder_layers": (1, 2), "d_model": (4, 20), "d_ff": (5, 24), "head_width": (2, 7), "d_k": (2, 9),
    "d_v": (2, 9), "tokens": (2, 12), "keys": (2, 12), "vocab_size": (7, 40), "src_vocab_size": (7, 40),
    "tgt_vocab_size": (7, 40), "block_size": (8, 24), "max_len": (8, 24), "top_k": (1, 5), "beams": (1, 3),
    "new_ids": (1, 4),
    "prompt": (2, 12), "count": (12, 40), "symbols": (2, 20), "batches": (1, 3), "parameters": (1, 3), "rows": (2, 9),
    "columns": (2, 9), "updates": (1, 4), "step": (1, 100), "warmup": (1, 50),
}  # fmt: skip


def bands(name: str, low: int, high: int) -> list[Band]:
    """Return the parts of a domain in which a case is needed: between marks, and where it matters at a mark."""
    marks = [mark for mark in THRESHOLDS.get(name, ()) if low <= mark < high]
    after = [(mark + 1, following) for mark, following in zip(marks, [*marks[1:], high], strict=False)]
    if name in _EXACT:
        usual = [size for size in (*THRESHOLDS[name], *_USUAL.get(name, ())) if low <= size <= high]
        after = [(first, max(first, last - (last != high))) for first, last in after]
        return [*after, *((size, size) for size in usual)]
    return after


def small(name: str, domain: Domain) -> Band:
    """Return the range of sizes that are small for this name, within the domain."""
    low, high = domain[name]
    least, most = _SMALL.get(name, (low, high))
    return (min(max(least, low), high), max(min(most, high), low))


def covering(
    domain: Domain, draw: Integers, cost: Cost, limit: float, *, coarse: bool = False
) -> Iterator[dict[str, int]]:
    """Yield few cases that together have a size in each band of each name.

    Each case costs at most `limit`, but for one large size that alone costs more. `coarse` is for what is made of
    parts that are checked by themselves: of each name only the last band, another one, and
    the middle mark.
    """
    open_bands = {name: _shuffled(bands(name, *domain[name]), draw) for name in domain}
    for name in _CHUNKED & domain.keys():
        marks = [mark for mark in THRESHOLDS[name] if domain[name][0] <= mark <= domain[name][1]]
        open_bands[name] += [(mark, mark) for mark in _shuffled(marks, draw)[:1]]
    if coarse:
        open_bands = {name: _few(name, found) for name, found in open_bands.items()}
    while any(open_bands.values()):
        case = {name: draw.integer(*small(name, domain)) for name in domain}
        taken = False
        for name in _shuffled([name for name in domain if open_bands[name]], draw):
            band = open_bands[name][-1]
            tried = {**case, name: _size(band, domain[name][1], draw)}
            if not taken or cost(tried) <= limit:
                open_bands[name].pop()
                case, taken = tried, True
        yield case
    if "d_ff" in domain:
        yield _in_usual_proportion(domain, draw)


def _in_usual_proportion(domain: Domain, draw: Integers) -> dict[str, int]:
    """Return a case whose d_ff is four times its width, a few hundred at most."""
    case = {name: draw.integer(*small(name, domain)) for name in domain}
    heads = case.get("num_heads", 1)
    name = "d_model" if "d_model" in domain else "head_width"
    most = min(domain[name][1], domain["d_ff"][1] // (_INNER * heads), 256 // heads)
    case[name] = draw.integer(max(domain[name][0], most // 2), max(domain[name][0], most))
    return {**case, "d_ff": min(_INNER * heads * case[name], domain["d_ff"][1])}


def _size(band: Band, high: int, draw: Integers) -> int:
    """Draw a size: in the last band near its end, beyond nearly every threshold; elsewhere any, or a round one.

    In the middle, small sizes come as often as large ones in proportion: they cost less.
    """
    first, last = band
    if last == high and first < last:
        size = draw.integer((first + 5 * last) // 6, last)
        return size - (size % _ROUND == 0)  # or a last chunk is never a part of one
    size = round(first * math.exp(math.log(last / first) * draw.integer(0, _STEPS) / _STEPS))
    up = -(-size // _ROUND) * _ROUND
    return up if up <= last and draw.integer(0, 1) else size


def _few(name: str, found: list[Band]) -> list[Band]:
    """Return the last band, another one, and the middle mark where marks are bands of their own."""
    last = max(found, default=None)
    middle = [(mark, mark) for mark in THRESHOLDS.get(name, ())[1:2] if (mark, mark) in found]
    others = [band for band in found if band != last and band not in middle][:1]
    return [*others, *middle, *([last] if last else [])]


def _shuffled(items: Sequence[Item], draw: Integers) -> list[Item]:
    found = list(items)
    for last in range(len(found) - 1, 0, -1):
        other = draw.integer(0, last)
        found[last], found[other] = found[other], found[last]
    return found
