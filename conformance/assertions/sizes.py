"""Sizes at which a clause is checked: drawn within the domain that it states, beyond every usual threshold.

Mistakes that depend on size begin where people make tables, fast paths and chunks: at powers of two. A domain is
therefore cut into bands between such marks, and a few cases together have a size in each band. One case is large in
few ways, so that it stays cheap and a failure points at what matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

__all__ = [
    "FOLLOWING", "THRESHOLDS", "Band", "Case", "Cost", "Coverage", "Domain", "Integers", "bands", "covering", "small",
]  # fmt: skip

Case = Mapping[str, int]
"""The size of each name at which something is checked."""
Domain = Mapping[str, tuple[int, int]]
"""By name of a size, the least and the largest."""
Band = tuple[int, int]
Coverage = Literal["every band", "some bands", "some bands and marks", "marks and last bands", "last bands"]
"""How much of a domain is covered.

"some bands" is for what is made of parts that are checked by themselves: of each name only the last band, another
one, and the middle mark; "some bands and marks" has, besides, each mark at which fast paths are written for single
widths, for what nothing else compares there. "marks and last bands" is for what is much like another check: the last
band of each name, and such marks. "last bands" is for what costs much more than a call.
"""
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
    "vocab_size": _COUNTS, "src_vocab_size": _COUNTS, "tgt_vocab_size": _COUNTS, "top_k": (50, 128),
    "beams": (4,), "new_ids": (32, 128, 256),
    "prompt": _LENGTHS, "count": (256, 10_000), "entries": (300, 512),
    "symbols": (64, 256, 1000), "batches": (10, 50), "parameters": (16, 64),
    "num_segments": (2,), "num_classes": (100, 1000), "patch_size": (8, 16), "channels": (4,),
    "patches_per_side": (8, 16),
    "experts": (16, 64),
    "rows": _WIDTHS, "columns": _WIDTHS, "updates": (16, 100), "step": (1000, 10_000), "warmup": (1000,),
}  # fmt: skip
"""Sizes after which a case is needed, by name."""
_USUAL: Mapping[str, tuple[int, ...]] = {
    "head_width": (48, 80, 96, 256), "d_model": (512, 768), "d_ff": (512, 1376, 2048, 3072),
}  # fmt: skip
"""Further sizes that many models have."""
_USUAL_HEADS = {"num_heads": (12, 12), "head_width": (64, 64)}
"""Those of the smallest of many well-known models, 768 wide."""
_USUAL_WIDTH, _UNUSUAL_HEADS = 768, (4, 6, 8, 16)
"""The same width, divided among other numbers of heads: what is looked up by the width alone is then wrong."""
_OTHER_HEADS = {"num_heads": (9, 9), "head_width": (72, 78)}
"""For what is made of parts that are checked with the usual ones: wider than 640, but heads are not always 64 wide, nor
an even number."""
_SQUARE = (65, 160)
"""As many keys as queries: then attention across two sequences may be taken for that within one."""
_LONG = 0.92
"""Share of the longest: many scores at once may take another path than many queries, or many keys."""
_MANY_HEADS = {"num_heads": (8, 12), "tokens": (300, 420)}
"""Many heads in a long sequence: then keys may be kept in another way."""
_ROUND_WIDTH = 64
"""Fast paths for a feed-forward are written for multiples of it."""
_MANY_ROWS, _NOT_NARROW = 4096, (36, 44)
"""Rows of a batch, all positions of all sequences together: chunks are cut there where rows are independent. They have
this width, which makes more than 2^17 numbers."""
_MANY_NUMBERS = {"num_heads": (2, 2), "head_width": (32, 36), "batch": (32, 36), "tokens": (66, 72)}
"""More than 2^17 numbers at once, in no size alone: large arrays may be changed in place."""
_LARGE_MATRIX = {"rows": (260, 400), "columns": (260, 400)}
"""More than 2^16 entries."""
_LARGE_BATCH = {"batch": (50, 64), "block_size": (130, 200)}
"""More than 4,096 ids."""
_INNER = 4
"""How many times wider than a model its feed-forward network usually is: a fast path may be written for that."""
_STEPS = 1 << 12
_LAST_BAND_PARTS = 23
"""The last band's sizes lie in the last one of this and one more parts of it."""
_CHUNKS = 64
"""Sizes below it are not cut into chunks."""
_ROUND = 16
"""Widths are often multiples of it."""
FOLLOWING = ("block_size", "max_len")
"""Sizes that are at least as large as another one, the number of positions."""
_CHUNKED = frozenset({"tokens", "keys"})
"""Where chunks are cut, two marks are bands of their own, the last one among them: a whole number of all chunks."""
_EXACT = frozenset({"head_width", "d_k", "d_v", "d_model", "num_heads"})
"""Where fast paths are written for single sizes, each mark is a band of its own."""
_SINGLE = frozenset({"head_width", "d_k", "d_v"})
"""Those for which a fast path is cheap to reach, whatever the others are."""
_ROUND_BATCHES = (8, 16, 32, 64)
"""Batches that many people train with: those for which a way of its own is written, or a mask has its rows, as a shape
that fits by luck. They go into cases that other sizes need anyway."""
_LAYERED = frozenset({"num_layers", "num_encoder_layers", "num_decoder_layers"})
_NOT_EVEN = (5, 7, 9)
"""Layers of a further case: the deepest are a whole number of pairs, threes and fours, as groups of layers are."""
_REPEATED = _LAYERED | {"batch", "num_heads"}
"""How often something is done: once or twice where it is costly."""
_TOO_DEAR = 4
"""So many times the limit is too much even with few repetitions: then there is one."""
_SMALL: Mapping[str, Band] = {
    "batch": (1, 2), "num_heads": (2, 3), "num_layers": (1, 2), "num_encoder_layers": (1, 2),
    "num_decoder_layers": (1, 2), "d_model": (4, 20), "d_ff": (5, 24), "head_width": (2, 7), "d_k": (2, 9),
    "d_v": (2, 9), "tokens": (2, 12), "keys": (2, 12), "vocab_size": (7, 40), "src_vocab_size": (7, 40),
    "tgt_vocab_size": (7, 40), "block_size": (8, 24), "max_len": (8, 24), "top_k": (1, 5), "beams": (1, 3),
    "new_ids": (1, 4),
    "prompt": (2, 12), "count": (12, 40), "entries": (290, 300),
    "symbols": (2, 20), "batches": (1, 3), "parameters": (1, 3), "rows": (2, 9),
    "num_segments": (1, 3), "num_classes": (2, 10), "patch_size": (1, 3), "channels": (1, 3),
    "patches_per_side": (2, 4),
    "experts": (2, 8), "experts_active": (1, 3),
    "columns": (2, 9), "updates": (1, 4), "step": (1, 100), "warmup": (1, 50),
}  # fmt: skip


def bands(name: str, low: int, high: int) -> list[Band]:
    """Return the parts of a domain in which a case is needed: between marks, and where it matters at a mark."""
    marks = [mark for mark in THRESHOLDS.get(name, ()) if low <= mark < high]
    after = [(mark + 1, following) for mark, following in zip(marks, [*marks[1:], high], strict=False)]
    if name in _EXACT:
        usual = [size for size in (*THRESHOLDS[name], *_USUAL.get(name, ())) if low <= size <= high]
        after = [(first, max(first, last - (last != high or high in usual))) for first, last in after]
        return [*after, *((size, size) for size in usual)]
    return after


def _is_round_batch(name: str, band: Band) -> bool:
    """Whether it is one of the batches that may fill a case, and must not take the place of another large size."""
    return name == "batch" and band[0] == band[1] and band[0] in _ROUND_BATCHES


def small(name: str, domain: Domain) -> Band:
    """Return the range of sizes that are small for this name, within the domain."""
    low, high = domain[name]
    least, most = _SMALL.get(name, (low, high))
    return (min(max(least, low), high), max(min(most, high), low))


def covering(
    domain: Domain, draw: Integers, cost: Cost, limit: float, coverage: Coverage = "every band"
) -> Iterator[dict[str, int]]:
    """Yield few cases that together have a size in the bands of each name.

    Each case costs at most `limit`, but for one large size that alone costs more: little is then repeated.
    """
    open_bands = {name: _shuffled(_wanted(name, domain, draw, coverage), draw) for name in domain}
    if "batch" in domain and coverage != "last bands":
        least, most = domain["batch"]
        open_bands["batch"] += [(size, size) for size in _shuffled(_ROUND_BATCHES, draw) if least <= size <= most]
    while any(open_bands.values()):
        case = {name: draw.integer(*small(name, domain)) for name in domain}
        taken = False
        names = _shuffled([name for name in domain if open_bands[name]], draw)
        for name in sorted(names, key=lambda name: _is_round_batch(name, open_bands[name][-1])):  # others come first
            tried = {**case, name: _size(open_bands[name][-1], domain[name][1], draw)}
            if taken and cost(tried) > limit:
                continue
            open_bands[name].pop()
            case, taken = tried if taken else _repeated_less(tried, name, domain, cost, limit), True
        yield case
    if coverage in {"every band", "some bands", "some bands and marks"}:
        yield from _usual(domain, draw, _USUAL_HEADS if coverage == "every band" else _OTHER_HEADS)


def _repeated_less(case: dict[str, int], large: str, domain: Domain, cost: Cost, limit: float) -> dict[str, int]:
    """Return a case with less repetition where one large size costs too much: as small as usual, or least of all."""
    repeated = (_REPEATED & domain.keys()) - {large}
    if cost(case) > limit:
        case = {**case, **{name: small(name, domain)[0] for name in repeated}}
    if cost(case) > _TOO_DEAR * limit:
        case = {**case, **{name: domain[name][0] for name in repeated}}
    return case


def _usual(domain: Domain, draw: Integers, heads: Mapping[str, Band]) -> Iterator[dict[str, int]]:
    """Yield cases in which several sizes go together as they usually do."""
    case = {name: draw.integer(*small(name, domain)) for name in domain}
    if "d_ff" in domain:
        yield _in_usual_proportion(domain, draw)
    if {"tokens", "keys"} <= domain.keys():
        length = draw.integer(*_SQUARE)
        yield {**case, "tokens": min(length, domain["tokens"][1]), "keys": min(length, domain["keys"][1])}
        yield {**case, "tokens": domain["tokens"][0]}  # one query, as a text that is written with a cache has
    if {"tokens", "keys", "d_k"} <= domain.keys():
        long = {name: draw.integer(round(_LONG * domain[name][1]), domain[name][1]) for name in ("tokens", "keys")}
        yield {**case, **long, "batch": min(2, domain["batch"][1])}
    if {"num_heads", "tokens"} <= domain.keys() and "d_ff" not in domain:
        yield {**case, **_within(_MANY_HEADS, domain, draw), "batch": domain["batch"][0]}
        unusual = _UNUSUAL_HEADS[draw.integer(0, len(_UNUSUAL_HEADS) - 1)]
        if (
            "head_width" in domain
            and unusual <= domain["num_heads"][1]
            and _USUAL_WIDTH // unusual <= domain["head_width"][1]
        ):
            yield {**case, "num_heads": unusual, "head_width": _USUAL_WIDTH // unusual, "batch": domain["batch"][0]}
    if {"num_layers", "block_size"} <= domain.keys() and domain["head_width"][1] >= _USUAL_HEADS["head_width"][1]:
        few = {name: domain[name][0] for name in ("batch", "num_layers")}
        yield {**case, **few, **_within(_USUAL_HEADS, domain, draw)}
    if (
        "d_ff" in domain
        and "block_size" not in domain
        and all(name in domain and most <= domain[name][1] for name, (_, most) in heads.items())
    ):
        yield {**case, "batch": domain["batch"][0], **{name: draw.integer(*sizes) for name, sizes in heads.items()}}
    yield from _many_numbers(case, domain, draw)


def _many_numbers(case: Case, domain: Domain, draw: Integers) -> Iterator[dict[str, int]]:
    """Yield cases in which no size is very large alone, but their product is."""
    if not {"num_heads", "d_k", "keys"} & domain.keys() and {"batch", "tokens"} <= domain.keys():
        batch = domain["batch"][1] - draw.integer(0, domain["batch"][1] // 4)
        many = {"batch": batch, "tokens": min(_MANY_ROWS // batch + draw.integer(1, 8), domain["tokens"][1])}
        yield {**case, **many, **_within({"d_model": _NOT_NARROW}, domain, draw)}
    if {"d_ff", "head_width", "tokens"} <= domain.keys() and "block_size" not in domain:
        once = {name: domain[name][0] for name in _LAYERED & domain.keys()}
        yield {**case, **once, **_within(_MANY_NUMBERS, domain, draw)}
    for together in (_LARGE_MATRIX, _LARGE_BATCH):
        if together.keys() <= domain.keys() and not {"tokens", "vocab_size"} & domain.keys():
            yield {**case, **_within(together, domain, draw)}


def _within(sizes: Mapping[str, Band], domain: Domain, draw: Integers) -> dict[str, int]:
    """Draw those of some sizes that a domain has, no larger than it allows."""
    return {name: min(draw.integer(*band), domain[name][1]) for name, band in sizes.items() if name in domain}


def _wanted(name: str, domain: Domain, draw: Integers, coverage: Coverage) -> list[Band]:
    """Return the bands of a name in which a case is needed."""
    found = bands(name, *domain[name])
    if name in _LAYERED and coverage != "last bands":
        odd = [size for size in _NOT_EVEN if domain[name][0] <= size < domain[name][1]]
        further = [(size, size) for size in _shuffled(odd, draw)[:1]]
        return [*found[-1:], *further]
    if coverage in {"marks and last bands", "last bands"}:
        marks = {(mark, mark) for mark in (THRESHOLDS[name] if name in _SINGLE else ())}
        return [band for band in found if band == max(found) or (coverage != "last bands" and band in marks)]
    if name in _CHUNKED:
        within = [mark for mark in THRESHOLDS[name] if domain[name][0] <= mark <= domain[name][1]]
        found += [(mark, mark) for mark in _shuffled(within[:-1], draw)[:1] + within[-1:]]
    if coverage in {"some bands", "some bands and marks"}:
        return _few(name, _shuffled(found, draw), every_mark=coverage == "some bands and marks")
    usual = () if name in _EXACT else (size for size in _USUAL.get(name, ()) if size <= domain[name][1])
    return [*found, *((size, size) for size in usual)]


def _in_usual_proportion(domain: Domain, draw: Integers) -> dict[str, int]:
    """Return a case whose d_ff is four times its width, a few hundred at most and a multiple of 64 where it may."""
    case = {name: draw.integer(*small(name, domain)) for name in domain}
    heads = case.get("num_heads", 1)
    name = "d_model" if "d_model" in domain else "head_width"
    most = min(domain[name][1], domain["d_ff"][1] // (_INNER * heads), 256 // heads)
    step = _ROUND_WIDTH // math.gcd(_ROUND_WIDTH, heads)  # for a width that is a multiple of it
    first, last = -(-most // (2 * step)), most // step
    rounded = step * draw.integer(first, last) if first <= last else most
    case[name] = max(domain[name][0], rounded)
    return {**case, "d_ff": min(_INNER * heads * case[name], domain["d_ff"][1])}


def _size(band: Band, high: int, draw: Integers) -> int:
    """Draw a size: in the last band near its end, beyond nearly every threshold, and odd: no whole number of chunks.

    Elsewhere it is any, or a round one. In the middle, small sizes come as often as large ones in proportion: they
    cost less.
    """
    first, last = band
    if last == high and first < last:
        size = draw.integer(-(-(first + _LAST_BAND_PARTS * last) // (_LAST_BAND_PARTS + 1)), last)
        return size - (last >= _CHUNKS and size % 2 == 0)
    size = round(first * math.exp(math.log(last / first) * draw.integer(0, _STEPS) / _STEPS))
    up = -(-size // _ROUND) * _ROUND
    return up if up <= last and draw.integer(0, 1) else size


def _few(name: str, found: list[Band], *, every_mark: bool) -> list[Band]:
    """Return the last band, another one, and a mark where marks are bands of their own: the middle or the last one.

    With every mark, all those at which fast paths are written for single widths.
    """
    last = max(found, default=None)
    marks = sorted(band for band in found if band[0] == band[1] and band != last)
    wanted = THRESHOLDS[name] if every_mark and name in _SINGLE else THRESHOLDS[name][1:2]
    of_marks = marks[-1:] if name == "tokens" else [band for band in marks if band[0] in wanted]
    others = [band for band in found if band != last and band not in of_marks][:1]
    return [*others, *of_marks, *([last] if last else [])]


def _shuffled(items: Sequence[Item], draw: Integers) -> list[Item]:
    found = list(items)
    for last in range(len(found) - 1, 0, -1):
        other = draw.integer(0, last)
        found[last], found[other] = found[other], found[last]
    return found
