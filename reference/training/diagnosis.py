"""What the curves of a run say: that it diverged, does not learn, learns too slowly, too wildly, or by heart.

Each finding has a name, the numbers behind it, and what to do. The rules look at averages over a twentieth of the run,
not at single steps. Adam moves no weight by much more than the rate in a step, so the sum of all rates bounds how far
a weight can go: a sum that is small against the weights shows a rate that is too low, whatever the curve looks like.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformkit.reference.training import metrics

__all__ = ["Curves", "RunFinding", "curves", "diagnose"]

Record = Mapping[str, Any]

PARTS = 20
"""Averages into which a curve is cut."""
FEW = 40
"""Steps below which a curve says nothing."""
FLAT = 0.01
"""A share of the first loss below which it has not fallen."""
FAR = 0.1
"""How far a weight of usual size, D^-½ for D near 100, must be able to move."""
VANISHED, EXPLODED = 1e-6, 10.0
"""Norms of gradients that count as vanishing and exploding."""


@dataclass(frozen=True)
class RunFinding:
    """Something that a curve says: a name, a sentence with numbers, what to do, and the step where it begins."""

    name: str
    problem: str
    advice: str
    step: int | None = None


@dataclass(frozen=True)
class Curves:
    """The measurements of a run, by kind; only finite ones, and the first step with one that is not."""

    steps: list[int]
    losses: list[float]
    norms: list[float]
    rates: list[float]
    evaluations: list[tuple[int, float]]
    broken: tuple[int, str] | None
    """The first step whose loss or norm is not finite, and which of them it was."""
    floor: float | None = None
    """The least loss that is possible, where that is known."""
    text: bool = True
    """Whether it learns a text, which no model predicts almost without loss; a task can be learned wholly."""

    @property
    def pieces(self) -> list[float]:
        """The loss averaged over equal parts of the run, at least five steps each."""
        count = max(1, min(PARTS, len(self.losses) // 5))
        edges = [len(self.losses) * number // count for number in range(count + 1)]
        return [statistics.fmean(self.losses[a:b]) for a, b in itertools.pairwise(edges)]


def curves(records: Sequence[Record], floor: float | None = None, *, text: bool = True) -> Curves:
    """Sort what a run measured. A number that was not finite stands as null in the file."""
    own = [record for record in records if record["kind"] == "step"]
    broken = next(
        ((one["step"], "loss" if one["loss"] is None else "norm of the gradients")
         for one in own if one["loss"] is None or one["norm"] is None), None,
    )  # fmt: skip
    whole = [one for one in own if one["loss"] is not None and one["norm"] is not None]
    evaluations = [(one["step"], one["loss"]) for one in metrics.evaluations(records)]
    return Curves(
        [one["step"] for one in whole], [one["loss"] for one in whole], [one["norm"] for one in whole],
        [one["rate"] for one in whole], evaluations, broken, floor, text,
    )  # fmt: skip


def diagnose(found: Curves) -> list[RunFinding]:
    """Return what stands out, causes before consequences; nothing for a run that is as it should be."""
    findings = list(_not_finite(found))
    if len(found.losses) < FEW:
        return findings
    rules: tuple[Callable[[Curves], Iterator[RunFinding]], ...] = (
        _too_good, _diverged, _not_learning, _wild, _slow, _overfit, _plateau, _gradients
    )  # fmt: skip
    names: set[str] = {finding.name for finding in findings}
    for rule in rules:
        for finding in rule(found):
            if not _follows(finding.name, names):
                findings.append(finding)
                names.add(finding.name)
    return findings


_CONSEQUENCES: Mapping[str, frozenset[str]] = {
    "not finite": frozenset({"diverged", "rate too high"}),
    "diverged": frozenset({"not learning", "rate too high", "plateau", "overfit", "rate too low"}),
    "not learning": frozenset({"plateau", "rate too low"}),
    "rate too low": frozenset({"plateau"}),
    "overfit": frozenset({"plateau"}),
}


def _follows(name: str, causes: set[str]) -> bool:
    """Whether a finding only repeats one that is told already."""
    return name in causes or any(name in _CONSEQUENCES.get(cause, ()) for cause in causes)


def _not_finite(found: Curves) -> Iterator[RunFinding]:
    if found.broken is None:
        return
    step, what = found.broken
    before = [norm for at, norm in zip(found.steps, found.norms, strict=True) if at < step]
    grew = ""
    if len(before) >= 3 and before[-1] > 3 * statistics.median(before):
        grew = f"; the norm of the gradients was {before[-1]:.3g} just before, {statistics.median(before):.3g} usually"
    yield RunFinding(
        "not finite", f"the {what} is NaN or infinite at step {step}, here first{grew}",
        "lower optimizer.peak or clip (optimizer.max_norm = 1.0); if the norm did not grow before, look for a division "
        "by 0",
        step,
    )  # fmt: skip


def _too_good(found: Curves) -> Iterator[RunFinding]:
    if not found.evaluations:
        return
    step, best = min(found.evaluations, key=lambda one: one[1])
    limit = found.floor * 0.97 if found.floor is not None else 0.02 if found.text else -math.inf
    if best < limit:
        known = f"{found.floor:.4f}" if found.floor is not None else "what a text allows"
        yield RunFinding(
            "too good", f"the validation loss is {best:.4f} at step {step}, below {known}: it sees what it predicts",
            "check the causal mask, the shift of the targets, and that validation windows are not in the training text",
            step,
        )  # fmt: skip


def _diverged(found: Curves) -> Iterator[RunFinding]:
    pieces = found.pieces
    best = min(range(len(pieces)), key=pieces.__getitem__)
    if pieces[-1] > 1.3 * pieces[best] and pieces[-1] - pieces[best] > 0.3 * abs(found.losses[0] - pieces[best]):
        step = _step_of(found, best)
        yield RunFinding(
            "diverged",
            f"the training loss rises from {pieces[best]:.4f} near step {step} to {pieces[-1]:.4f} at the end",
            "lower optimizer.peak, clip gradients (optimizer.max_norm = 1.0), or lengthen optimizer.warmup", step,
        )  # fmt: skip


def _not_learning(found: Curves) -> Iterator[RunFinding]:
    """The loss stays where it began: by a rate that moves nothing, or by something else than the rate."""
    first, last = statistics.fmean(found.losses[:3]), found.pieces[-1]
    if first - last >= FLAT * abs(first):
        return
    reach = math.fsum(found.rates)
    if reach < FAR:
        yield _too_low(f"the loss stays near {last:.4f}", reach, len(found.rates))
        return
    yield RunFinding(
        "not learning", f"the training loss stays near {last:.4f}, where it began ({first:.4f})",
        "the rates are large enough: check that gradients arrive (conform inspect), that the optimizer has the model's "
        "parameters, and that targets belong to their inputs; a rate that is much too high also does this",
        found.steps[0],
    )  # fmt: skip


def _wild(found: Curves) -> Iterator[RunFinding]:
    """A rate that is too high shows as a loss above its first value, or as jumps from step to step."""
    first = statistics.fmean(found.losses[:3])
    peak = max(range(len(found.pieces)), key=found.pieces.__getitem__)
    advice = "lower optimizer.peak by a factor of 3 to 10, or lengthen optimizer.warmup"
    if found.pieces[peak] > 1.2 * first:
        problem = f"the training loss rises to {found.pieces[peak]:.4f}, above the {first:.4f} that it began with"
        yield RunFinding("rate too high", problem, advice, _step_of(found, peak))
        return
    half = found.losses[len(found.losses) // 2 :]
    jumps = [b - a for a, b in itertools.pairwise(half)]
    usual = statistics.median(abs(jump) for jump in jumps)
    level = statistics.fmean(half)
    spikes = [number for number, jump in enumerate(jumps) if jump > max(8 * usual, 0.5 * level, 0.05 * first)]
    if len(spikes) >= 3:
        step = found.steps[len(found.losses) // 2 + spikes[0] + 1]
        problem = f"the training loss jumps up {len(spikes)} times in the second half, first at step {step}"
        yield RunFinding("rate too high", problem, advice, step)


def _slow(found: Curves) -> Iterator[RunFinding]:
    """A curve that still falls as fast at its end as in its middle has not come to what can be learned."""
    pieces = found.pieces
    if len(pieces) < 8:
        return
    whole, late = pieces[0] - pieces[-1], pieces[len(pieces) // 2] - pieces[-1]
    reach = math.fsum(found.rates)
    if whole > 0 and late > 0.35 * whole and reach < 10 * FAR:
        yield _too_low(f"the loss still falls as fast as before, to {pieces[-1]:.4f}", reach, len(found.rates))


def _too_low(what: str, reach: float, steps: int) -> RunFinding:
    return RunFinding(
        "rate too low", f"{what}: in {steps} steps Adam can move a weight by at most {reach:.2g}",
        "raise optimizer.peak by a factor of 3 to 10, or train for more steps",
    )  # fmt: skip


def _overfit(found: Curves) -> Iterator[RunFinding]:
    if len(found.evaluations) < 3:
        return
    step, best = min(found.evaluations, key=lambda one: one[1])
    last_step = found.evaluations[-1][0]
    last = statistics.median(loss for _, loss in found.evaluations[-3:])
    then, now = _near(found, step), _near(found, last_step)
    rise = max(0.03 * best, 0.02 * (found.evaluations[0][1] - best))
    if last - best > rise and last_step - step >= 0.15 * last_step and now < 0.99 * then:
        yield RunFinding(
            "overfit",
            f"since step {step} the validation loss rises from {best:.4f} to {last:.4f} while the training loss falls "
            f"from {then:.4f} to {now:.4f}",
            "use the checkpoint of the best step, which is kept; stop early (training.patience), add dropout or "
            "optimizer.weight_decay, take a smaller model or more text", step,
        )  # fmt: skip


def _plateau(found: Curves) -> Iterator[RunFinding]:
    """Nothing more is learned in the last half of the evaluations, and the loss is not at its known least."""
    if len(found.evaluations) < 6:
        return
    half = len(found.evaluations) // 2
    before = min(loss for _, loss in found.evaluations[:half])
    after = min(loss for _, loss in found.evaluations[half:])
    done = after < 1.05 * found.floor if found.floor is not None else after < 0.02
    if not done and before - after < 0.002 * before:
        step = found.evaluations[half - 1][0]
        yield RunFinding(
            "plateau", f"since step {step} the validation loss no longer falls: {before:.4f} before, {after:.4f} after",
            "let the rate fall to the end (optimizer.schedule = cosine), or take a larger model; more steps do nothing",
            step,
        )  # fmt: skip


def _gradients(found: Curves) -> Iterator[RunFinding]:
    late = statistics.median(found.norms[-max(len(found.norms) // 10, 5) :])
    if late < VANISHED:
        yield RunFinding(
            "vanishing gradients", f"the norm of the gradients is {late:.2g} at the end",
            "look for dead units, a saturated softmax, or parts without a residual connection: conform inspect",
            found.steps[-1],
        )  # fmt: skip
    early = statistics.median(found.norms[: max(len(found.norms) // 10, 5)])
    if late > EXPLODED and late > 10 * early:
        yield RunFinding(
            "exploding gradients", f"the norm of the gradients grows from {early:.3g} to {late:.3g}",
            "clip gradients (optimizer.max_norm = 1.0), lower optimizer.peak, and normalize the input of each block",
            found.steps[-1],
        )  # fmt: skip


def _step_of(found: Curves, piece: int) -> int:
    """Return the step in the middle of one of the averages."""
    return found.steps[min(int((piece + 0.5) * len(found.steps) / len(found.pieces)), len(found.steps) - 1)]


def _near(found: Curves, step: int) -> float:
    """Return the training loss around a step: the mean of a twentieth of the run."""
    width = max(len(found.steps) // PARTS, 5)
    place = next((number for number, at in enumerate(found.steps) if at >= step), len(found.steps) - 1)
    return statistics.fmean(found.losses[max(place - width, 0) : place + 1])
