"""What a right, untrained model hardly shows: numbers that are not finite, dead, growing, cut off, or too sure.

Each rule says where, what, and what to do next. None is a verdict: whoever starts a projection at 0 on purpose will
find it here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from conformkit.conformance.apps.inspect.inspection import Conspicuous, Heads, Inspection, Part
from conformkit.conformance.text import listed

__all__ = ["conspicuous"]

_DEAD = 0.25
"""Such a share of units, 0 at every position, is no accident of one batch."""
_GROWTH = 1.6
"""By such a factor the stream grows from block to block where something is added twice, or scaled up."""
_HUGE = 1e4
_FALL = 1e-3
_SHARP = 0.05
_ALIKE = 1.0 - 1e-6
_ABOVE_CHANCE = 1.0
_NUMBERED = re.compile(r"^(.*?)(\d+)$")


def conspicuous(found: Inspection) -> Iterator[Conspicuous]:
    """Yield what stands out, causes before what follows from them."""
    broken = list(_not_finite(found))
    yield from broken
    rules = (_dead, _zero, _growing, _heads, _not_reached, _gradients, _too_sure)
    for rule in rules[:1] if broken else rules:
        yield from rule(found)


def _not_finite(found: Inspection) -> Iterator[Conspicuous]:
    """Name the first part whose output is not finite: the others take it over."""
    first = next((part for part in found.parts if part.broken), None)
    if first is not None:
        yield Conspicuous(
            _called(first.name),
            f"{first.broken} of {_numbers(first)} numbers are NaN or infinite, here first",
            "look at what it divides by, roots, exponentiates: a row whose scores are all hidden, a norm without eps",
        )  # fmt: skip


def _dead(found: Inspection) -> Iterator[Conspicuous]:
    for part in found.parts:
        if part.units and part.dead / part.units >= _DEAD:
            yield Conspicuous(
                _called(part.name), f"{part.dead} of {part.units} units are 0 at every position: dead",
                "look at the bias and the scale before the activation; what is dead gets no gradient and stays so",
            )  # fmt: skip


def _zero(found: Inspection) -> Iterator[Conspicuous]:
    for part in found.parts:
        if _numbers(part) and part.largest == 0.0 and not part.dead:
            yield Conspicuous(
                _called(part.name),
                "its output is 0 everywhere",
                "look at its weights, unless they start at 0 on purpose",
            )


def _growing(found: Inspection) -> Iterator[Conspicuous]:
    """Compare numbered parts of one name, the first with the last; then look for what is huge at all."""
    for parts in _rows(found.parts, lambda part: part.name):
        first, last = parts[0].rms, parts[-1].rms
        if first > 0.0 and last / first > _GROWTH ** (len(parts) - 1):
            yield Conspicuous(
                f"{parts[0].name} … {parts[-1].name}", f"the output grows from {first:.3g} to {last:.3g}: it explodes",
                "add the residual once, normalize what a block reads, and scale the scores and the projections",
            )  # fmt: skip
            return
    huge = next((part for part in found.parts if part.largest > _HUGE), None)
    if huge is not None:
        yield Conspicuous(
            _called(huge.name), f"its output reaches {huge.largest:.3g}: it explodes",
            "start its weights smaller, about 1/√(inputs), and normalize what it reads",
        )  # fmt: skip


def _heads(found: Inspection) -> Iterator[Conspicuous]:
    for heads in found.heads:
        yield from _one_place(heads)
        alike = [head for head, entropy in enumerate(heads.entropy) if entropy >= _ALIKE * heads.most > 0.0]
        if alike:
            yield Conspicuous(
                _called(heads.part), f"{_listed('head', alike)}: all positions weigh the same",
                "see that scores are made of queries and keys, and that the softmax gets them unchanged",
            )  # fmt: skip


def _one_place(heads: Heads) -> Iterator[Conspicuous]:
    sharp = [head for head, entropy in enumerate(heads.entropy) if entropy < _SHARP * heads.most]
    if sharp:
        yield Conspicuous(
            _called(heads.part), f"{_listed('head', sharp)}: entropy near 0, each query looks at one position only",
            "divide the scores by √d_k, start W_q and W_k smaller, and look at the mask",
        )  # fmt: skip


def _not_reached(found: Inspection) -> Iterator[Conspicuous]:
    if not found.differentiated:
        return
    cut = [weight.name for weight in found.weights if weight.gradient is None]
    if cut:
        yield Conspicuous(
            _listed("parameter", cut), "no gradient arrives",
            "look for a detach, .data, no_grad or NumPy on the way to the loss, or a part that is never called",
        )  # fmt: skip
    still = [weight.name for weight in found.weights if weight.gradient == 0.0]
    if still:
        yield Conspicuous(
            _listed("parameter", still), "the gradient is exactly 0",
            "look at what follows: dead units, a factor 0, a result that is not used",
        )  # fmt: skip


def _gradients(found: Inspection) -> Iterator[Conspicuous]:
    bad = [weight.name for weight in found.weights if weight.gradient is not None and math.isnan(weight.gradient)]
    if bad:
        yield Conspicuous(
            _listed("parameter", bad), "the gradient is NaN or infinite",
            "look for a root or a logarithm of 0, and for -inf in what is differentiated",
        )  # fmt: skip
        return
    for name, norms in _by_block(found).items():
        first, last = norms[0], norms[-1]
        if len(norms) > 1 and 0.0 < first < _FALL * last:
            yield Conspicuous(
                name, f"the gradient falls from {last:.3g} in the last to {first:.3g} in the first: it vanishes",
                "see that each block adds to the stream instead of replacing it, and normalizes what it reads",
            )  # fmt: skip
        if len(norms) > 1 and 0.0 < last < _FALL * first:
            yield Conspicuous(
                name, f"the gradient grows from {last:.3g} in the last to {first:.3g} in the first: it explodes",
                "normalize what a block reads, start its weights smaller, and clip while training",
            )  # fmt: skip


def _too_sure(found: Inspection) -> Iterator[Conspicuous]:
    size = found.sizes.get("vocab_size")
    if found.loss is None or not isinstance(size, int):
        return
    if not math.isfinite(found.loss) or found.loss > math.log(size) + _ABOVE_CHANCE:
        yield Conspicuous(
            "logits", f"the loss of ids drawn evenly is {found.loss:.3g}, ln {size} is {math.log(size):.3g}",
            "start embedding and head smaller: an untrained model knows nothing",
        )  # fmt: skip


def _by_block(found: Inspection) -> dict[str, list[float]]:
    """Return, for parameters under a number, the norm of all gradients by that number."""
    squares: dict[str, dict[int, float]] = {}
    for weight in found.weights:
        match = re.match(r"^(.*?)\.?(\d+)\.", weight.name)
        if match and weight.gradient is not None:
            own = squares.setdefault(match[1], {})
            own[int(match[2])] = own.get(int(match[2]), 0.0) + weight.gradient**2
    return {name: [math.sqrt(own[number]) for number in sorted(own)] for name, own in squares.items()}


def _rows(parts: Sequence[Part], name: Callable[[Part], str]) -> Iterator[list[Part]]:
    """Yield runs of parts that differ by the number at their end, three at least, in the order of numbers."""
    runs: dict[str, dict[int, Part]] = {}
    for part in parts:
        match = _NUMBERED.match(name(part))
        if match:
            runs.setdefault(match[1], {})[int(match[2])] = part
    for run in runs.values():
        if len(run) > 2 and len({part.kind for part in run.values()}) == 1:
            yield [run[number] for number in sorted(run)]


def _numbers(part: Part) -> int:
    return math.prod(part.shape)


def _called(name: str) -> str:
    return name or "the whole"


def _listed(noun: str, items: Sequence[object], most: int = 4) -> str:
    return f"{noun}{'s' if len(items) > 1 else ''} {listed([str(item) for item in items], most)}"
