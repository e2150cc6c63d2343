"""Clauses of spec/loss.md."""

from __future__ import annotations

from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_refuses, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import TOLERANCE, close, number
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.loss_inputs import PAD, every_size, example, one_target, partly_ignored, scored
from conformkit.conformance.evidence.scoring import Scoring
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.loss import cross_entropy as definition
from conformkit.spec.loss import loss_gradient


@clause("LOSS-SCALAR")
def test_the_loss_is_one_number(cross_entropy: Tool, draw: Draw) -> None:
    logits, targets = example(draw)
    number("the loss of 2 rows of 3 targets", Scoring(cross_entropy).value(logits, targets))


@clause("LOSS-SHIFT-TARGET")
def test_logits_and_targets_are_compared_place_by_place(cross_entropy: Tool) -> None:
    score = Scoring(cross_entropy)
    targets = np.array([[1, 0, 3, 2, 5, 4]])  # their matrix is symmetric: no other mistake shows here
    own, following = (score(8.0 * np.eye(6)[ids], targets) for ids in (targets, np.roll(targets, -1)))
    label = f"logits that are sure of each target cost {own:.4f}, of the next target {following:.4f}"
    check(label, own < following)


@clause("LOSS-UNIFORM-LOGV")
def test_equal_logits_cost_the_logarithm_of_the_vocabularys_size(cross_entropy: Tool) -> None:
    score = Scoring(cross_entropy)
    stored = facts("LOSS-UNIFORM-LOGV")[0]
    for size, want in each_of("size, want", list(zip(stored.inputs["V"], stored.value["loss"], strict=True))[:6]):
        close(f"the loss of {size} equal logits", score(np.zeros((1, 1, size)), one_target(size - 1)), want)


@clause("LOSS-SHIFT-INV")
def test_a_constant_on_all_logits_changes_nothing(cross_entropy: Tool, draw: Draw) -> None:
    score, logits = Scoring(cross_entropy), draw.values(1, 1, 5)
    before = score(logits, one_target(2))
    for constant in each_of("constant", [-8.0, 8.0, 32.0]):
        close(f"the loss with {constant:g} added", score(logits + constant, one_target(2)), before, allowed=1e-4)


@clause("LOSS-RAW-LOGITS")
def test_losses_of_two_targets_differ_as_their_logits_do(cross_entropy: Tool, draw: Draw) -> None:
    score, logits = Scoring(cross_entropy), 2.0 * draw.values(1, 1, 5)
    logits[..., 1] += 3.0
    first = score(logits, one_target(1))
    for target in each_of("target", range(2, 5)):
        want = float(logits[0, 0, 1] - logits[0, 0, target])
        close(f"the loss of id {target} less that of id 1", score(logits, one_target(target)) - first, want, scale=1.0)


@clause("LOSS-STABLE")
def test_large_logits_give_the_exact_loss(cross_entropy: Tool) -> None:
    score = Scoring(cross_entropy)
    for low, high in each_of("low, high", [(-1e4, 1e4), (0.0, 2e4), (-2e4, 0.0)]):
        logits = np.full((1, 1, 5), low)
        logits[..., 2] = high
        close("the loss of the id that is certain", score(logits, one_target(2)), 0.0, scale=1.0)
        close("the loss of an id that is out of the question", score(logits, one_target(4)), 2e4)


@clause("LOSS-RESHAPE")
def test_flattening_keeps_each_target_beside_its_logits(cross_entropy: Tool) -> None:
    score = Scoring(cross_entropy)
    if score.flat:
        raise NotApplicable("it takes logits (N, V): there is nothing to flatten")
    for targets, size in each_of("targets, size", [
        (np.array([[0, 3, 1], [4, 2, 0], [1, 1, 4], [2, 0, 3]]), 5), (np.array([[2, 0, 1, 1]]), 3),
    ]):  # fmt: skip
        certain = 30.0 * np.eye(size)[targets]
        label = f"the loss of logits {certain.shape} that are sure of each target"
        close(label, score(certain, targets), 0.0, scale=1.0)


@clause("LOSS-MEAN")
def test_repeating_rows_or_positions_leaves_the_loss(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    logits, targets = draw.values(2, 3, 5), 1 + draw.ids(4, 2, 3)
    loss = score(logits, targets)
    for rows, positions in each_of("rows, positions", [(3, 1), (1, 4), (2, 2)]):
        under(f"{rows} times the rows, {positions} times the positions")
        more = np.tile(logits, (rows, positions, 1)), np.tile(targets, (rows, positions))
        close("the loss", score(*more), loss)


@clause("LOSS-CE")
def test_the_loss_is_minus_the_mean_log_probability(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    for batch, length, size, scale in each_of(
        "batch, length, size, scale", [(1, 1, 3, 1.0), (2, 3, 5, 1.0), (3, 4, 11, 4.0), (5, 1, 2, 2.0)]
    ):
        logits, targets = draw.values(batch, length, size, scale=scale), draw.ids(size, batch, length)
        targets[0, 0] = 0
        close("the loss", score(logits, targets), definition(logits, targets))
    stored = facts("LOSS-CE")[0]
    under(f"golden {stored.number}, {stored.title}")
    close("the loss", score(np.array([[stored.inputs["logits"]]]), one_target(0)), stored.value["loss"])
    two = facts("LOSS-MEAN")[0]
    under(f"golden {two.number}, {two.title}")
    logits = np.array([[stored.inputs["logits"], [0.0, 0.0, 0.0]]])
    close("the loss", score(logits, np.array([[0, 1]])), two.value["mean"])


@clause("LOSS-GRAD")
def test_the_gradient_is_the_softmax_minus_the_targets(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    for batch, length, size in each_of("batch, length, size", [(1, 1, 3), (2, 3, 5)]):
        logits, targets = draw.values(batch, length, size), draw.ids(size, batch, length)
        check_close("the gradient", score.gradient(logits, targets), loss_gradient(logits, targets), TOLERANCE)
    stored = facts("LOSS-CE")[0]
    under(f"golden {stored.number}, {stored.title}")
    got = score.gradient(np.array([[stored.inputs["logits"]]]), one_target(0))
    check_close("the gradient", got[0, 0], np.array(stored.value["gradient"]), TOLERANCE)


@clause("LOSS-TARGET-RANGE")
def test_a_target_outside_the_vocabulary_is_refused(cross_entropy: Tool) -> None:
    score = Scoring(cross_entropy)
    for target in each_of("target", [5, 1000]):
        check_refuses(f"target {target} of 5 ids", partial(score.value, np.zeros((1, 1, 5)), one_target(target)))


@clause("LOSS-IGNORE")
def test_ignored_targets_count_nothing(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    for ignored in each_of("ignored", [PAD, 0, -100]):
        logits, targets = partly_ignored(draw, ignored)
        before = score(logits, targets, ignore_index=ignored)
        other = np.where((targets == ignored)[..., None], draw.values(*logits.shape, scale=3.0), logits)
        after = score(other, targets, ignore_index=ignored)
        close("the loss after the logits of ignored targets changed", after, before)


@clause("LOSS-IGNORE-MEAN")
def test_the_mean_is_over_the_targets_that_count(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    for ignored in each_of("ignored", [PAD, 0]):
        logits, targets = partly_ignored(draw, ignored)
        want = definition(logits, targets, ignore_index=ignored)
        close("the loss", score(logits, targets, ignore_index=ignored), want)
    two, one = facts("LOSS-MEAN")[0], facts("LOSS-CE")[0]
    under(f"golden {two.number}, {two.title}")
    logits = np.array([[one.inputs["logits"], [0.0, 0.0, 0.0]]])
    loss = score(logits, np.array([[0, 1]]), ignore_index=1)
    close("the loss with the second ignored", loss, two.value["second ignored"])


@clause("LOSS-ALL-IGNORED")
def test_without_a_target_the_loss_is_a_number_or_refused(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    try:
        value = score.value(draw.values(2, 3, 5), np.full((2, 3), PAD), ignore_index=PAD)
    except ImplementationFailure as refusal:
        check(f"it ended with {refusal.kind}", refusal.kind == "exception")
        return
    number("the loss of nothing", value)


@clause("LOSS-LS")
def test_smoothing_gives_each_id_its_share(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    logits, targets = example(draw)
    for smoothing in each_of("smoothing", [0.1, 0.5]):
        want = definition(logits, targets, label_smoothing=smoothing)
        close("the loss", score(logits, targets, label_smoothing=smoothing), want)
    stored = facts("LOSS-LS")[0]
    under(f"golden {stored.number}, {stored.title}")
    loss = score(np.array([[stored.inputs["logits"]]]), one_target(0), label_smoothing=stored.inputs["ε"])
    close("the loss", loss, stored.value["loss"])


@clause("LOSS-LS-IGNORE")
def test_smoothing_leaves_ignored_targets_out(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)
    for smoothing, ignored in each_of("smoothing, ignored", [(0.1, PAD), (0.3, -100)]):
        logits, targets = partly_ignored(draw, ignored)
        want = definition(logits, targets, ignore_index=ignored, label_smoothing=smoothing)
        close("the loss", score(logits, targets, ignore_index=ignored, label_smoothing=smoothing), want)


@clause("LOSS-SIZES")
def test_the_loss_equals_the_definition_at_every_size(cross_entropy: Tool, draw: Draw) -> None:
    score = Scoring(cross_entropy)

    def check_sizes(sizes: Case) -> None:
        logits, targets = every_size(draw.at(sizes), sizes)
        close("the loss", score(logits, targets), definition(logits, targets))
        if cross_entropy.offers("ignore-index"):
            want = definition(logits, targets, ignore_index=PAD)
            close(f"the loss, {PAD} ignored,", score(logits, targets, ignore_index=PAD), want)
        if cross_entropy.offers("label-smoothing"):
            want = definition(logits, targets, label_smoothing=0.1)
            close("the loss, smoothed,", score(logits, targets, label_smoothing=0.1), want)

    check_at_sizes(draw, check_sizes, scored, dict, after="LOSS-CE")
