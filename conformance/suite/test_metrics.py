"""Clauses of spec/metrics.md."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal, each_of, supposing, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import close, number
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.definition_at_sizes import multiplications
from conformkit.conformance.evidence.loss_slips import of_evaluation
from conformkit.conformance.evidence.trainable_fixtures import (
    batch,
    gradients,
    modes,
    nearest_trainee,
    own_loss,
    parameters_of,
    put_gradients,
    trainee,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.metrics import bits_per_character as bits_of
from conformkit.spec.metrics import perplexity as perplexity_of

_CALL = 1e6
"""A call of a model, however small: as costly as so many multiplications."""


@clause("METRIC-PPL")
def test_perplexity_is_the_exponential_of_the_loss(perplexity: Tool) -> None:
    for loss in each_of("loss", [0.0, 1e-6, 0.5, 1.0, 4.174387, 11.5, 60.0, 80.0]):
        close(f"the perplexity of {loss}", perplexity(loss=np.array(loss)), perplexity_of(loss))
    token, stored = facts("LOSS-CE")[0], facts("METRIC-PPL")[0]
    under(f"golden {stored.number}, {stored.title}")
    close("the perplexity", perplexity(loss=np.array(token.value["loss"])), stored.value["perplexity"])


@clause("METRIC-BPC")
def test_bits_are_nats_over_ln_2(bits_per_character: Tool) -> None:
    for loss in each_of("loss", [0.0, 1e-6, 1.0, 1.47, 11.5, 60.0, 1e4]):
        close(f"the bits of {loss} nats", bits_per_character(loss=np.array(loss)), bits_of(loss))
    token, stored = facts("LOSS-CE")[0], facts("METRIC-BPC")[0]
    under(f"golden {stored.number}, {stored.title}")
    close("the bits", bits_per_character(loss=np.array(token.value["loss"])), stored.value["bits"])


@clause("METRIC-BPC-TOKENS")
def test_fewer_tokens_than_characters_make_a_character_cheaper(bits_per_character: Tool) -> None:
    for share in each_of("share", [0.5, 0.25, 1.5, 0.01, 20.0]):
        label = f"the bits of 2 nats a token, with {share} tokens per character"
        got = bits_per_character(loss=np.array(2.0), tokens_per_character=share)
        close(label, got, bits_of(2.0, share))


@clause("METRIC-EVAL-LOSS")
def test_evaluation_returns_the_mean_loss(evaluate: Tool, model: Subject, draw: Draw) -> None:
    instance = trainee(model, draw)
    for rows, length in each_of("rows, length", [(3, 5), (1, 1), (2, 9)]):
        batches = [batch(instance, draw, rows, length)]
        _compare(evaluate(model=instance, batches=batches), instance, batches)


@clause("METRIC-PPL-WEIGHTED")
def test_losses_are_averaged_over_tokens(evaluate: Tool, model: Subject, draw: Draw) -> None:
    instance = trainee(model, draw)
    for sizes in each_of("sizes", [[(2, 7), (2, 7), (1, 7)], [(3, 5), (1, 5)]]):
        batches = [batch(instance, draw, rows, length) for rows, length in sizes]
        batches[-1] = _surprising(instance, batches[-1])
        _compare(evaluate(model=instance, batches=batches), instance, batches)


@clause("METRIC-EVAL-MODE")
def test_evaluation_runs_without_dropout(evaluate: Tool, model: Subject, draw: Draw) -> None:
    model.requires("dropout")
    instance = trainee(model, draw, dropout=0.5)
    batches = [batch(instance, draw, 4, 7)]
    want = own_loss(instance, batches)
    instance.call(batches[0][0], mode="train", seed=1)
    close("the loss of a model in training mode", evaluate(model=instance, batches=batches), want)


@clause("METRIC-EVAL-RESTORE")
def test_evaluation_gives_the_training_mode_back(evaluate: Tool, model: Subject, draw: Draw) -> None:
    _keeps(evaluate, model, draw, "train")


@clause("METRIC-EVAL-STAYS")
def test_evaluation_leaves_the_model_in_eval_mode(evaluate: Tool, model: Subject, draw: Draw) -> None:
    _keeps(evaluate, model, draw, "eval")


@clause("METRIC-EVAL-PURE")
def test_evaluation_learns_nothing(evaluate: Tool, model: Subject, draw: Draw) -> None:
    instance = trainee(model, draw)
    batches = [batch(instance, draw, 2, 5)]
    before = instance.read_raw()
    number("the loss", evaluate(model=instance, batches=batches))
    for name, value in instance.read_raw().items():
        check_equal(f"{name} after evaluation", value, before[name])
    left = sorted(name for name, gradient in gradients(instance).items() if gradient.any())
    check(f"a gradient was left on {', '.join(left[:3])}", not left)
    put_gradients(instance, {name: draw.values(*value.shape) for name, value in parameters_of(instance).items()})
    kept = gradients(instance)
    number("the loss", evaluate(model=instance, batches=batches))
    after = gradients(instance)
    lost = sorted(name for name in kept if name not in after)
    check(f"the gradient kept with {', '.join(lost[:3])} is gone", not lost)
    for name, gradient in kept.items():
        check_equal(f"the gradient kept with {name}, after evaluation", after[name], gradient)


@clause("METRIC-EVAL-REPEAT")
def test_evaluation_is_repeatable(evaluate: Tool, model: Subject, draw: Draw) -> None:
    wanted = {"dropout": 0.3} if model.offers("dropout") else {}
    instance = trainee(model, draw, **wanted)
    batches = [batch(instance, draw, 3, 5), batch(instance, draw, 2, 5)]
    instance.call(batches[0][0], mode="train", seed=1)
    first, second = (number("the loss", evaluate(model=instance, batches=batches)) for _ in range(2))
    check(f"the loss is {second!r}, and was {first!r} the first time", first == second)


@clause("METRIC-EVAL-SIZES")
def test_the_loss_of_any_number_of_batches_is_their_mean(evaluate: Tool, model: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own = draw.at(sizes)
        instance = trainee(model, own, block_size=sizes["tokens"])
        batches = [batch(instance, own, sizes["batch"], sizes["tokens"]) for _ in range(sizes["batches"])]
        batches[-1] = _surprising(instance, batches[-1])
        _compare(evaluate(model=instance, batches=batches), instance, batches)

    def cost(sizes: Case) -> float:
        return sizes["batches"] * (_CALL + multiplications({**sizes, "d_model": 12, "num_heads": 3}))

    check_at_sizes(
        draw, check_sizes, cost, partial(nearest_trainee, model), after="METRIC-PPL-WEIGHTED", coverage="some bands"
    )


def _compare(got: Any, instance: Instance, batches: list[tuple[Array, Array]]) -> None:
    supposing(of_evaluation(instance, batches))
    close("the loss", got, own_loss(instance, batches))


def _surprising(model: Instance, one: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the batch with the least probable targets, so that its loss stands out."""
    return one[0], np.argmin(model(one[0]), axis=-1)


def _keeps(evaluate: Tool, model: Subject, draw: Draw, mode: str) -> None:
    """Check that evaluation leaves a model in this mode, and so its parts."""
    model.requires("modes")
    instance = trainee(model, draw)
    batches = [batch(instance, draw, 2, 5)]
    instance.call(batches[0][0], mode=mode, seed=1)
    before = modes(instance, batches[0][0])
    number("the loss", evaluate(model=instance, batches=batches))
    after = modes(instance, batches[0][0])
    check(f"training is {_flags(after)} in its parts after evaluation, {_flags(before)} before it", after == before)


def _flags(found: tuple[bool, ...]) -> str:
    return " and ".join(str(flag).lower() for flag in found) or "unknown"
