"""Clauses of spec/paths_loss.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, NotYet, check, check_close, remark, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import other_ids
from conformkit.conformance.evidence.own_loss import IGNORED, Losing, losing
from conformkit.conformance.evidence.padded_texts import check_same_logits
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

CLOSE = 1e-5
"""Losses are often computed in float32, whatever the model computes in."""
WORDS = {0: "its own place", 1: "the place before", 2: "two places before", -1: "the place after"}


@clause("PATH-LOSS-SHIFT")
def test_targets_are_shifted_once_or_not_at_all(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    shift, declared = loss.shift(draw), loss.path.call_arguments.config.shifts
    wanted = {0, 1} if declared is None else {int(declared)}
    places = " or ".join(WORDS[each] for each in sorted(wanted))
    found = f"logits of {WORDS[shift]}" if shift is not None else "no logits of one place"
    if shift is None:
        counted = ", ".join(map(str, loss.counted(draw))) or "none"
        under(f"rows of {loss.ids.shape[1]} targets, of which those at {counted} change the loss")
    check(f"a target is compared with {found}, expected those of {places}", shift in wanted)


@clause("PATH-LOSS-ROW-ENDS")
def test_the_last_logits_of_a_row_have_no_target_in_the_next_row(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    if _shift(loss, draw) != 1:
        raise NotApplicable("its targets are shifted by the caller")
    targets, vocab_size = loss.targets.copy(), loss.path.instance.sizes["vocab_size"]
    targets[:, 0] = other_ids(targets[:, 0], vocab_size, draw)
    under("the first target of each row changed")
    _check_loss("the loss", loss(targets), loss(loss.targets))


@clause("PATH-LOSS-LOGITS")
def test_targets_do_not_change_the_logits(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    want = loss.logits()
    others = other_ids(loss.targets, loss.path.instance.sizes["vocab_size"], draw)
    for name, targets in (("some targets", loss.targets), ("others", others)):
        under(f"a call with {name}, compared with one without")
        check_same_logits("the logits", loss.logits(targets), want, loss.path.instance)


@clause("PATH-LOSS-MEAN")
def test_the_loss_is_the_mean_over_all_targets(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    shift = _shift(loss, draw)
    under(f"{loss.targets.size} targets, all of which count")
    _check_mean(loss, draw, loss.targets, shift)


@clause("PATH-LOSS-IGNORE")
def test_ignored_targets_do_not_count(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    shift, ignored = _shift(loss, draw), _ignored(loss)
    for places in ([3], [1, 2, 4]):
        targets = loss.targets.copy()
        targets[:, places] = ignored
        under(f"{int((targets == ignored).sum())} of {targets.size} targets {ignored}")
        _check_mean(loss, draw, targets, shift, ignored)


@clause("PATH-LOSS-PIECES")
def test_a_batch_in_pieces_costs_what_it_costs_as_a_whole(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    shift, ignored = _shift(loss, draw), _ignored(loss)
    targets = loss.targets.copy()
    for row in range(len(targets)):
        targets[row, 1 : 2 + row] = ignored
    rows = [slice(row, row + 1) for row in range(len(targets))]
    counts = [int((targets[row, shift:] != ignored).sum()) for row in rows]
    under(f"rows with {', '.join(map(str, counts))} targets that count, one by one and together")
    losses = np.asarray([loss(targets), *(loss(targets[row], row) for row in rows)])
    if not _close(losses[0], np.average(losses[1:], weights=counts)):
        losses -= [loss.added(draw, shift, row) for row in (slice(None), *rows)]
    _check_loss("the loss of the batch", losses[0], float(np.average(losses[1:], weights=counts)))


def _shift(loss: Losing, draw: Draw) -> int:
    """Return by how much targets are shifted; that it is right is for PATH-LOSS-SHIFT to say."""
    shift = loss.shift(draw)
    if shift not in {0, 1}:
        raise NotYet("PATH-LOSS-SHIFT")
    return shift


def _ignored(loss: Losing) -> int:
    """Return the target that does not count: -100, or -1 where that is refused."""
    for ignored in IGNORED:
        targets = loss.targets.copy()
        targets[0, -1] = ignored
        try:
            loss(targets)
        except ImplementationFailure:
            continue
        return ignored
    return IGNORED[0]


def _check_mean(loss: Losing, draw: Draw, targets: Array, shift: int, ignored: int = IGNORED[0]) -> None:
    """Compare with the mean cross-entropy, and what is above it with a term that is the same for all targets."""
    got, want = loss(targets), loss.expected(targets, shift, ignored)
    if not _close(got, want) and (added := loss.added(draw, shift)):
        remark(
            f"the loss has a term of {added:.3g} that no target changes, as one that balances experts; judged without"
        )
        got -= added
    _check_loss("the loss", got, want)


def _close(got: float, want: float) -> bool:
    return bool(np.isclose(got, want, rtol=CLOSE, atol=0))


def _check_loss(label: str, got: float, want: float) -> None:
    check_close(label, np.asarray(got), np.asarray(want), CLOSE)
