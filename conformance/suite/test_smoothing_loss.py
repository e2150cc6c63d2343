"""Clauses of spec/smoothing_loss.md. Losses are compared by the implementation's own definition of smoothing."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import TOLERANCE, close, number
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.loss_inputs import PAD, every_size, example, one_target, partly_ignored, scored
from conformkit.conformance.evidence.smoothing import Smoothed
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.loss import cross_entropy
from conformkit.spec.smoothing_loss import READINGS


@clause("SMOOTH-SCALAR")
def test_the_loss_is_one_number(label_smoothing_loss: Tool, draw: Draw) -> None:
    number("the loss of 2 rows of 3 targets", Smoothed(label_smoothing_loss).value(*example(draw)))


@clause("SMOOTH-ZERO")
def test_without_smoothing_it_is_the_cross_entropy(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    for size, target in each_of("size, target", [(3, 2), (7, 0), (2, 1)]):
        logits = draw.values(1, 1, size)
        close("the loss", score(logits, one_target(target), 0.0), cross_entropy(logits, one_target(target)))
    stored = facts("SMOOTH-ZERO")[0]
    under(f"golden {stored.number}, {stored.title}")
    close("the loss", score(np.array([[stored.inputs["logits"]]]), one_target(0), 0.0), stored.value["loss"])


@clause("SMOOTH-MINIMUM")
def test_certainty_costs_more_than_the_smoothed_shares(label_smoothing_loss: Tool) -> None:
    score = Smoothed(label_smoothing_loss)
    for size, smoothing, reading in each_of("size, smoothing, reading", [(5, 0.1, READINGS[0]), (3, 0.4, READINGS[1])]):
        shares = score(np.log(reading.shares(one_target(0), size, smoothing)), one_target(0), smoothing)
        certain = score(20.0 * np.eye(size)[one_target(0)], one_target(0), smoothing)
        check(f"a certain prediction costs {certain:.6f}, the smoothed shares {shares:.6f}", certain > shares)


@clause("SMOOTH-SHARES")
def test_the_targets_shares_sum_to_1(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()
    for size, smoothing in each_of("size, smoothing", [(5, 0.1), (3, 0.4), (11, 0.2), (2, 0.5)]):
        logits, target = draw.values(1, 1, size), one_target(size - 1)
        close("the loss", score(logits, target, smoothing), reading.loss(logits, target, smoothing), scale=1.0)
    stored = {fact.number: fact for fact in facts("SMOOTH-SHARES")}
    one, five = stored["G166"], stored["G165"]
    if reading.all_ids:
        under(f"golden {one.number}, {one.title}")
        loss = score(np.array([[one.inputs["logits"]]]), one_target(0), one.inputs["ε"])
        close("the loss", loss, one.value["divergence" if reading.divergence else "loss"])
    if reading == READINGS[0]:
        under(f"golden {five.number}, {five.title}")
        best = np.log(np.array([[five.value["targets"]]]))
        close("the least loss", score(best, one_target(0), five.inputs["ε"]), five.value["least loss"])


@clause("SMOOTH-SPREAD")
def test_smoothing_is_spread_over_all_ids(label_smoothing_loss: Tool) -> None:
    reading = Smoothed(label_smoothing_loss).reading()
    check("smoothing is spread over the V - 1 other ids, expected all V", reading.all_ids)


@clause("SMOOTH-ENTROPY")
def test_the_loss_is_a_cross_entropy(label_smoothing_loss: Tool) -> None:
    reading = Smoothed(label_smoothing_loss).reading()
    check("the entropy of the smoothed targets is subtracted, expected the cross-entropy", not reading.divergence)


@clause("SMOOTH-STABLE")
def test_large_logits_give_the_exact_loss(label_smoothing_loss: Tool) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()
    for low, high, target in each_of("low, high, target", [(-1e4, 1e4, 2), (0.0, 2e4, 4), (-2e4, 0.0, 2)]):
        logits = np.full((1, 1, 5), low)
        logits[..., 2] = high
        close("the loss", score(logits, one_target(target)), reading.loss(logits, one_target(target), 0.1))


@clause("SMOOTH-MEAN")
def test_repeating_rows_or_positions_leaves_the_loss(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    logits, targets = example(draw)
    loss = score(logits, targets)
    for rows, positions in each_of("rows, positions", [(3, 1), (1, 4), (2, 2)]):
        more = np.tile(logits, (rows, positions, 1)), np.tile(targets, (rows, positions))
        close("the loss", score(*more), loss)


@clause("SMOOTH-ORACLE")
def test_the_loss_is_the_mean_of_the_smoothed_losses(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()
    for batch, length, size, smoothing in each_of(
        "batch, length, size, smoothing", [(1, 2, 3, 0.1), (2, 3, 5, 0.3), (3, 4, 11, 0.1)]
    ):
        logits, targets = draw.values(batch, length, size, scale=2.0), draw.ids(size, batch, length)
        targets[0, 0] = 0
        close("the loss", score(logits, targets, smoothing), reading.loss(logits, targets, smoothing), scale=1.0)


@clause("SMOOTH-GRAD")
def test_the_gradient_is_the_softmax_minus_the_smoothed_shares(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()
    for batch, length, size, smoothing in each_of(
        "batch, length, size, smoothing", [(1, 1, 3, 0.1), (2, 3, 5, 0.4), (2, 2, 4, 0.0)]
    ):
        logits, targets = draw.values(batch, length, size), draw.ids(size, batch, length)
        want = reading.gradient(logits, targets, smoothing)
        check_close("the gradient", score.gradient(logits, targets, smoothing), want, TOLERANCE)


@clause("SMOOTH-IGNORE")
def test_ignored_targets_count_nothing(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    for ignored in each_of("ignored", [PAD, 0, -100]):
        logits, targets = partly_ignored(draw, ignored)
        before = score(logits, targets, ignore_index=ignored)
        other = np.where((targets == ignored)[..., None], draw.values(*logits.shape, scale=3.0), logits)
        close(
            "the loss after the logits of ignored targets changed", score(other, targets, ignore_index=ignored), before
        )


@clause("SMOOTH-IGNORE-MEAN")
def test_the_mean_is_over_the_targets_that_count(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()
    for ignored, smoothing in each_of("ignored, smoothing", [(PAD, 0.1), (0, 0.3), (-100, 0.1)]):
        logits, targets = partly_ignored(draw, ignored)
        want = reading.loss(logits, targets, smoothing, ignore_index=ignored)
        close("the loss", score(logits, targets, smoothing, ignore_index=ignored), want)


@clause("SMOOTH-ALL-IGNORED")
def test_without_a_target_the_loss_is_a_number_or_refused(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    try:
        value = score.value(draw.values(2, 3, 5), np.full((2, 3), PAD), ignore_index=PAD)
    except ImplementationFailure as refusal:
        check(f"it ended with {refusal.kind}", refusal.kind == "exception")
        return
    number("the loss of nothing", value)


@clause("SMOOTH-SIZES")
def test_the_loss_equals_the_definition_at_every_size(label_smoothing_loss: Tool, draw: Draw) -> None:
    score = Smoothed(label_smoothing_loss)
    reading = score.reading()

    def check_sizes(sizes: Case) -> None:
        logits, targets = every_size(draw.at(sizes), sizes)
        close("the loss", score(logits, targets), reading.loss(logits, targets, 0.1), scale=1.0)
        if label_smoothing_loss.offers("ignore-index"):
            want = reading.loss(logits, targets, 0.1, ignore_index=PAD)
            close(f"the loss, {PAD} ignored,", score(logits, targets, ignore_index=PAD), want, scale=1.0)

    check_at_sizes(draw, check_sizes, scored, dict, after="SMOOTH-ORACLE")
