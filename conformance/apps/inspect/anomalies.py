"""Signs that a right, untrained model rarely shows: non-finite, dead, growing, detached or overconfident values.

Each rule says where, what, and what to do next. None is a verdict: a projection that starts at 0 on purpose is listed
too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from conformkit.conformance.apps.inspect.inspection import Conspicuous, Heads, Inspection, Part
from conformkit.conformance.text import listed

__all__ = ["conspicuous"]

_DEAD = 0.25
"""If this share of units is 0 at every position, it is not a coincidence of one batch."""
_GROWTH = 1.6
"""Growth of the residual stream per block if something is added twice or scaled up."""
_HUGE = 1e4
_FALL = 1e-3
_SHARP = 0.05
_EXACTLY_ALIKE, _ALIKE = 2e-7, 1e-6
"""How little entropy may lack to be the largest: what float32 rounds away, and next to heads that are less even."""
_FAINT = 2e-6
"""The gradient of a matrix, number by number, in relation to the others' of a model: rounding is all that arrives."""
_ABOVE_CHANCE = 1.0
_CAUSAL = ("SelfAttention", "MultiHeadAttention", "TransformerBlock", "TinyTransformerLM")
_FUTURE = 1e-6
_TWO_OUTPUTS = ("BertModel", "BertForPreTraining")
_SECOND = re.compile(r"pool|next|nsp|relation", re.IGNORECASE)
"""Parameters of the second output, which is not differentiated: the pooled row, the next sentence."""
_NUMBERED = re.compile(r"^(.*?)(\d+)$")


def conspicuous(found: Inspection) -> Iterator[Conspicuous]:
    """Yield what stands out, causes before consequences."""
    broken = list(_not_finite(found))
    yield from broken
    rules = (_dead, _zero, _leaks, _growing, _heads, _not_reached, _gradients, _faint, _too_sure)
    for rule in rules[:1] if broken else rules:
        yield from rule(found)


def _not_finite(found: Inspection) -> Iterator[Conspicuous]:
    """Name the first part whose output is not finite: later parts only pass it on."""
    first = next((part for part in found.parts if part.broken), None)
    if first is not None:
        yield Conspicuous(
            _called(first.name),
            f"{first.broken} of {_numbers(first)} numbers are NaN or infinite, here first",
            "look at divisions, roots and exponentials: a row whose scores are all hidden, a norm without eps",
        )  # fmt: skip


def _leaks(found: Inspection) -> Iterator[Conspicuous]:
    """Name attention that looks at later positions in a component that must not."""
    if found.component not in _CAUSAL or found.sizes.get("causal", True) is False:
        return
    for heads in found.heads:
        seen = [head for head, weight in enumerate(heads.future) if weight > _FUTURE]
        if seen:
            yield Conspicuous(
                _called(heads.part),
                f"{_listed('head', seen)}: {max(heads.future):.2g} of the weight is on later positions",
                "the causal mask does not reach the scores, or True in it means the opposite",
            )  # fmt: skip


def _dead(found: Inspection) -> Iterator[Conspicuous]:
    for part in found.parts:
        if part.units and part.dead / part.units >= _DEAD:
            yield Conspicuous(
                _called(part.name), f"{part.dead} of {part.units} units are 0 at every position: dead",
                "look at the bias and the scale before the activation; dead units get no gradient and stay dead",
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
    """Compare the first and the last of numbered parts with one name; then look for huge values anywhere."""
    for parts in _rows(found.parts, lambda part: part.name):
        first, last = parts[0].rms, parts[-1].rms
        if first > 0.0 and last / first > _GROWTH ** (len(parts) - 1):
            yield Conspicuous(
                f"{parts[0].name} … {parts[-1].name}", f"the output grows from {first:.3g} to {last:.3g}: it explodes",
                "add the residual once, normalize the input of each block, and scale the scores and the projections",
            )  # fmt: skip
            return
    huge = next((part for part in found.parts if part.largest > _HUGE), None)
    if huge is not None:
        yield Conspicuous(
            _called(huge.name), f"its output reaches {huge.largest:.3g}: it explodes",
            "initialize its weights smaller, about 1/√(inputs), and normalize its input",
        )  # fmt: skip


def _heads(found: Inspection) -> Iterator[Conspicuous]:
    lacks = {
        heads.part: [1.0 - entropy / heads.most for entropy in heads.entropy] for heads in found.heads if heads.most
    }
    usual = median(all_) if (all_ := [lack for own in lacks.values() for lack in own]) else 0.0
    for heads in found.heads:
        yield from _one_place(heads)
        own = lacks.get(heads.part, [])
        alike = [n for n, lack in enumerate(own) if lack <= _EXACTLY_ALIKE or lack <= min(_ALIKE, _FALL * usual)]
        if alike:
            yield Conspicuous(
                _called(heads.part), f"{_listed('head', alike)}: all positions have equal weights",
                "check that scores come from queries and keys, and that the softmax gets them unchanged",
            )  # fmt: skip


def _one_place(heads: Heads) -> Iterator[Conspicuous]:
    sharp = [head for head, entropy in enumerate(heads.entropy) if entropy < _SHARP * heads.most]
    if sharp:
        yield Conspicuous(
            _called(heads.part), f"{_listed('head', sharp)}: entropy near 0, each query attends to one position only",
            "divide the scores by √d_k, initialize W_q and W_k smaller, and check the mask",
        )  # fmt: skip


def _not_reached(found: Inspection) -> Iterator[Conspicuous]:
    if not found.differentiated:
        return
    second = _SECOND.search if found.component in _TWO_OUTPUTS else lambda _: None
    cut = [weight.name for weight in found.weights if weight.gradient is None and not second(weight.name)]
    if cut:
        yield Conspicuous(
            _listed("parameter", cut), "no gradient arrives",
            "look for a detach, .data, no_grad or NumPy on the way to the loss, or a part that is never called",
        )  # fmt: skip
    still = [weight.name for weight in found.weights if weight.gradient == 0.0]
    if still:
        yield Conspicuous(
            _listed("parameter", still), "the gradient is exactly 0",
            "look at later steps: dead units, a factor of 0, an unused result",
        )  # fmt: skip


def _gradients(found: Inspection) -> Iterator[Conspicuous]:
    bad = [weight.name for weight in found.weights if weight.gradient is not None and math.isnan(weight.gradient)]
    if bad:
        yield Conspicuous(
            _listed("parameter", bad), "the gradient is NaN or infinite",
            "look for a root or a logarithm of 0, and for -inf in differentiated values",
        )  # fmt: skip
        return
    for name, norms in _by_block(found).items():
        first, last = norms[0], norms[-1]
        if len(norms) > 1 and 0.0 < first < _FALL * last:
            yield Conspicuous(
                name, f"the gradient falls from {last:.3g} in the last to {first:.3g} in the first: it vanishes",
                "check that each block adds to the residual stream instead of replacing it, and normalizes its input",
            )  # fmt: skip
        if len(norms) > 1 and 0.0 < last < _FALL * first:
            yield Conspicuous(
                name, f"the gradient grows from {last:.3g} in the last to {first:.3g} in the first: it explodes",
                "normalize the input of each block, initialize its weights smaller, and clip gradients in training",
            )  # fmt: skip


def _too_sure(found: Inspection) -> Iterator[Conspicuous]:
    size = found.sizes.get("vocab_size", found.sizes.get("tgt_vocab_size"))
    if found.loss is None or not isinstance(size, int):
        return
    if not math.isfinite(found.loss) or found.loss > math.log(size) + _ABOVE_CHANCE:
        yield Conspicuous(
            "logits", f"the loss on uniformly drawn ids is {found.loss:.3g}, ln {size} is {math.log(size):.3g}",
            "initialize embedding and head smaller: an untrained model should predict all ids equally",
        )  # fmt: skip


def _faint(found: Inspection) -> Iterator[Conspicuous]:
    """Name matrices to which next to nothing arrives, compared with the others of the same model."""
    sizes = {w.name: w.gradient / math.sqrt(w.count) for w in found.weights if len(w.shape) > 1 and w.gradient}
    usual = median(sizes.values()) if sizes else 0.0
    for name, size in sizes.items():
        if size < _FAINT * usual:
            yield Conspicuous(
                f"parameter {name}", f"the gradient is {size / usual:.1g} times the usual one of this model",
                "look at what its numbers are used for: a weight that is divided by itself, a softmax over one number",
            )  # fmt: skip


def _by_block(found: Inspection) -> dict[str, list[float]]:
    """Return, for numbered parameters, the norm of all gradients by number."""
    squares: dict[str, dict[int, float]] = {}
    for weight in found.weights:
        match = re.match(r"^(.*?)\.?(\d+)\.", weight.name)
        if match and weight.gradient is not None:
            own = squares.setdefault(match[1], {})
            own[int(match[2])] = own.get(int(match[2]), 0.0) + weight.gradient**2
    return {name: [math.sqrt(own[number]) for number in sorted(own)] for name, own in squares.items()}


def _rows(parts: Sequence[Part], name: Callable[[Part], str]) -> Iterator[list[Part]]:
    """Yield runs of at least three parts whose names differ only by the number at the end, in order of numbers."""
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
