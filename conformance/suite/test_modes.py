"""Clauses of spec/modes.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_differs,
    check_finite,
    refusing,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.evidence.averages import check_varies_in_training
from conformkit.conformance.evidence.for_each_component import each
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.twins import check_same, trainable
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

VECTORS = ("SelfAttention", "MultiHeadAttention", "FeedForward", "TransformerBlock")
"""Components without a separate clause that protects their inputs."""
DRAWS = 2000
SIGMAS = 6.0
"""Standard errors allowed for a counted share; under a normal distribution a right one is further off once in 5e8."""
PLACES = 6
"""How often a number may pass dropout in one component: on weights, hidden units, outputs, twice each."""
ONE_BY_ONE = tuple(f"{role}.weight" for role in ("v", "out", "up", "gate", "down"))
ROWS, KINDS = 16, 5
"""Outputs for equal inputs, and the least number of distinct ones; rows dropped as a whole give two."""


@clause("DET-MODE-RECURSIVE")
def test_switching_the_mode_reaches_every_part(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "modes"):
        instance, inputs = subject.example(draw, dropout=0.5)
        before = instance(*inputs)
        instance.call(*inputs, mode="train", seed=1)
        after = instance.call(*inputs, watch=True)
        check(f"{subject.name}: some part is still in training mode after the switch", not any(after.modes))
        check_same(f"{subject.name}: the output after a call in training mode", after.out, before, instance)


@clause("DET-FUNCTIONAL-DROPOUT")
def test_the_dropout_rate_changes_nothing_in_evaluation(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "weights-bound"):
        dropping = subject.build(dropout=0.5).randomize(draw)
        keeping = subject.build(dropout=0.0).write(dropping.weights)
        inputs = dropping.example_inputs(draw)
        check_same(f"{subject.name}: the output with dropout rate 0.5", dropping(*inputs), keeping(*inputs), dropping)


@clause("DET-MODES-AGREE")
def test_without_dropout_training_and_evaluation_compute_the_same(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "modes"):
        instance, inputs = subject.example(draw, dropout=0.0, num_layers=1, block_size=40, max_len=40)
        settings = [inputs, instance.example_inputs(draw, batch=1, tokens=36)]
        if subject.precision == "float64" and inputs[0].dtype.kind == "f":  # scores of 1e5 are coarse in float32
            settings.append(tuple(300.0 * a for a in inputs))
        for given in settings:
            training = instance.call(*given, mode="train", seed=1)
            check_same(f"{subject.name}: the output in training mode", training.out, instance(*given), instance)


@clause("DET-TRAIN-AGAIN")
def test_training_mode_drops_again_after_an_evaluation(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "modes"):
        instance, inputs = subject.example(draw, dropout=0.5)
        instance(*inputs)
        _check_varies(instance, inputs)


@clause("DET-DROPOUT-USED")
def test_a_dropout_rate_that_is_accepted_is_used(every: list[Subject], draw: Draw) -> None:
    parts = ("PositionalEncoding", "FeedForward", "TransformerBlock")
    taking = [subject for subject in each(every, "dropout", "modes", named=parts) if subject.takes("dropout")]
    if not taking:
        raise NotApplicable("no part takes a dropout rate as an argument of its own")
    for subject in taking:
        instance, inputs = subject.example(draw, dropout=0.5)
        _check_varies(instance, inputs)


@clause("DET-DROPOUT-RATE")
def test_the_higher_of_two_rates_drops_more(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "modes", named=VECTORS):
        seldom = subject.build(dropout=0.1).scatter(draw)
        often = subject.build(dropout=0.8)
        often.write_raw(trainable(seldom))
        (x,) = seldom.example_inputs(draw, batch=1, tokens=4)
        many = np.repeat(x, nearest_allowed("batch", 200, subject.bound.limits), axis=0)
        few, more = (instance(many, mode="train", seed=1) - instance(x) for instance in (seldom, often))
        low, high = (float(np.sqrt((moved**2).mean())) for moved in (few, more))
        sentence = f"{subject.name}: outputs move by {low:.3g} at dropout rate 0.1, by {high:.3g} at 0.8"
        check(sentence, high >= low)
    for subject in each(every, "dropout", "modes", "weights-bound", named=VECTORS[1:]):
        _check_shares(subject, draw, 0.25)


@clause("DET-DROPOUT-DRAWS")
def test_each_position_and_each_sequence_has_draws_of_its_own(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "modes", named=VECTORS):
        instance, (x,) = subject.example(draw, batch=1, tokens=8, dropout=0.5)
        same = np.repeat(np.repeat(x[:1, :1], x.shape[1], axis=1), 4, axis=0)
        out = instance(same, mode="train", seed=1)
        check_differs(f"{subject.name}: outputs of equal sequences in one batch,", out[1:], out[:-1])
        if x.shape[1] > 1:
            check_differs(f"{subject.name}: outputs of equal positions in one sequence,", out[:, 1:], out[:, :-1])
        kinds, rows = len(np.unique(out.reshape(-1, out.shape[-1]), axis=0)), len(out) * out.shape[1]
        if rows >= ROWS:
            sentence = f"{subject.name}: {rows} equal inputs give {kinds} kinds of outputs in training mode"
            check(sentence, kinds >= KINDS, "whole rows are dropped, or none")


@clause("DET-DROPOUT-ALL")
def test_a_rate_of_1_gives_finite_outputs_or_is_refused(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout", "modes"):
        output = np.zeros(1)
        with refusing():
            instance, inputs = subject.example(draw, num_layers=1, dropout=1.0)
            output = instance(*inputs, mode="train", seed=1)
        check_finite(f"{subject.name}: the output with dropout rate 1", output)


def _check_varies(instance: Instance, inputs: tuple[Array, ...]) -> None:
    one, other = (instance.call(*inputs, mode="train", seed=seed).out for seed in (1, 2))
    label = f"{instance.subject.name}: the output in training mode with another random state"
    check_varies_in_training(label, one, other)


def _check_shares(subject: Subject, draw: Draw, rate: float) -> None:
    """Check that a number that passes dropout k times is kept with probability (1 - rate)^k, for some k.

    Each feature of the output depends on a single number: one value, one hidden unit. Of a pre-norm block, the
    contribution of one sublayer is checked, with the other one silenced.
    """
    if subject.name == "TransformerBlock" and subject.variant.placement in {"post", "deepnorm", "sandwich", "output"}:
        return
    instance = subject.build(d_model=12, num_heads=3, d_ff=20, dropout=rate)
    x = np.ceil(8.0 * np.abs(instance.example_inputs(draw, batch=1, tokens=1)[0])) / 8.0  # exact in every format
    draws = nearest_allowed("batch", DRAWS, subject.bound.limits)
    if draws < DRAWS or x.shape[1] > 1:
        return
    many = np.repeat(x, draws, axis=0)
    mixed = bool(subject.variant.experts)  # an output of two experts is dropped where both drop it
    if subject.name == "FeedForward" and mixed:
        return
    both = ("attention.",) if mixed else ("attention.", "feed_forward.")
    for part in both if subject.name == "TransformerBlock" else ("",):
        _one_by_one(instance, part)
        base = x if part else np.zeros_like(x)
        there = np.argwhere((instance(x) - base)[0, 0])[:, 0]
        dropped = (instance(many, mode="train", seed=1) - base)[:, 0, there] == 0.0
        _check_share(
            f"{subject.name}{part and ', ' + part[:-1]}",
            dropped,
            rate,
            max(instance.sizes.get(n, 1) for n in ("head_width", "value_width")),
        )


def _check_share(label: str, dropped: Array, rate: float, together: int) -> None:
    """Check how many are dropped, (draws, features); `together` neighbors may be dropped as one, as in a head."""
    apart = max(1, dropped.shape[1] // together)
    shares = 1.0 - (1.0 - rate) ** np.arange(PLACES + 1)
    allowed = SIGMAS / np.sqrt(4.0 * len(dropped) * apart)
    share = float(dropped.mean()) if dropped.size else 0.0
    sentence = f"{label}: of {dropped.size} numbers {share:.1%} are dropped at dropout rate {rate:g}"
    wanted = ", ".join(f"{right:.1%}" for right in shares[1:4])
    check(
        sentence, bool((np.abs(shares - share) <= allowed).any()), f"expected {wanted} for dropout in 1, 2 or 3 places"
    )


def _one_by_one(instance: Instance, part: str) -> None:
    """Write weights of this part so that each feature is one value or one hidden unit; everything else is 0."""
    found = zeros(instance, "")
    for name, array in found.items():
        if name.startswith(part) and name.endswith(ONE_BY_ONE):
            found[name] = np.eye(*array.shape)
        elif "norm" in name and name.endswith("weight"):
            found[name] = np.ones(array.shape)
    instance.write(found)
