"""Clauses of spec/paths_loss.md."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import NotApplicable, NotYet, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.logits import other_ids
from conformkit.conformance.evidence.own_loss import (
    Losing,
    check_ignored,
    check_loss,
    check_mean,
    check_pieces,
    check_shift,
    ignored,
    losing,
)
from conformkit.conformance.evidence.padded_texts import check_same_logits
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause


@clause("PATH-LOSS-SHIFT")
def test_targets_are_shifted_once_or_not_at_all(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    declared = loss.path.call_arguments.config.shifts
    check_shift(loss, draw, {0, 1} if declared is None else {int(declared)})


@clause("PATH-LOSS-ROW-ENDS")
def test_the_last_logits_of_a_row_have_no_target_in_the_next_row(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    if _shift(loss, draw) != 1:
        raise NotApplicable("its targets are shifted by the caller")
    targets, vocab_size = loss.targets.copy(), loss.vocab_size
    targets[:, 0] = other_ids(targets[:, 0], vocab_size, draw)
    under("the first target of each row changed")
    check_loss("the loss", loss(targets), loss(loss.targets))


@clause("PATH-LOSS-LOGITS")
def test_targets_do_not_change_the_logits(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    want = loss.logits()
    others = other_ids(loss.targets, loss.vocab_size, draw)
    for name, targets in (("some targets", loss.targets), ("others", others)):
        under(f"a call with {name}, compared with one without")
        check_same_logits("the logits", loss.logits_beside(targets), want, loss.path.instance)


@clause("PATH-LOSS-MEAN")
def test_the_loss_is_the_mean_over_all_targets(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    shift = _shift(loss, draw)
    under(f"{loss.targets.size} targets, all of which count")
    check_mean(loss, draw, loss.targets, shift)


@clause("PATH-LOSS-IGNORE")
def test_ignored_targets_do_not_count(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    check_ignored(loss, draw, _shift(loss, draw), ignored(loss))


@clause("PATH-LOSS-PIECES")
def test_a_batch_in_pieces_costs_what_it_costs_as_a_whole(model: Subject, draw: Draw) -> None:
    loss = losing(model, draw)
    check_pieces(loss, draw, _shift(loss, draw), ignored(loss))


def _shift(loss: Losing, draw: Draw) -> int:
    """Return by how much targets are shifted; that it is right is for PATH-LOSS-SHIFT to say."""
    shift = loss.shift(draw)
    if shift not in {0, 1}:
        raise NotYet("PATH-LOSS-SHIFT")
    return shift
