"""Clauses of spec/initialization.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_finite, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.differences import cotangent_for, differentiate
from conformkit.conformance.evidence.for_each_component import each
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.attention import attention_weights, softmax
from conformkit.spec.heads import split_heads
from conformkit.spec.latent_attention import latent_heads
from conformkit.spec.layers import linear

LARGEST = 1e6
SEEDS = (1, 2, 3)
WIDE: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 160}
"""Wide enough for the spread of a matrix to be known to a few percent."""


@clause("INIT-FINITE")
def test_every_initial_number_is_finite(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters"):
        instance = subject.construct(subject.sizes(), seed=draw.integer(0, 999), marked=True)
        for name, array in _parameters(instance).items():
            check_finite(f"{subject.name}: the initial {name}", array)
            largest = float(np.abs(array).max(initial=0.0))
            check(f"{subject.name}: the initial {name} holds {largest:.3g}, expected less than 1e6", largest < LARGEST)
        check_finite(f"{subject.name}: the output with initial parameters", instance(*instance.example_inputs(draw)))


@clause("INIT-LEARNS")
def test_a_new_model_has_somewhere_to_go(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters", "gradients"):
        instance = subject.build(seed=draw.integer(0, 999))
        inputs = instance.example_inputs(draw)
        found = differentiate(instance, inputs, cotangent_for(instance, inputs, draw)).parameters
        given = {name: gradient for name, gradient in found.items() if gradient is not None}
        for name, gradient in given.items():
            check_finite(f"{subject.name}: the first gradient of {name}", gradient)
        moved = any(bool(gradient.any()) for gradient in given.values() if gradient.ndim > 1)
        check(f"{subject.name}: the first gradients of all its matrices are 0", moved)


@clause("INIT-BIAS-ZERO")
def test_biases_begin_at_zero_or_near_it(every: list[Subject], draw: Draw) -> None:
    looked_at = 0
    for subject in each(every, "parameters", "weights-bound"):
        for name, bias in _begun(subject.build(**WIDE, seed=draw.integer(0, 999)), "bias").items():
            looked_at += 1
            largest = float(np.abs(bias).max())
            check(f"{subject.name}: the initial {name} holds {largest:.3g}, expected at most 0.5", largest <= 0.5)
    if not looked_at:
        raise NotApplicable("no linear layer has a bias")


@clause("INIT-SPREAD")
def test_each_matrix_keeps_the_size_of_a_signal(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters", "weights-bound", without=("PositionalEncoding",)):
        for name, matrix in _begun(subject.build(**WIDE, seed=draw.integer(0, 999)), "weight").items():
            times = float(matrix.std()) * math.sqrt(matrix.shape[-1])
            label = f"{subject.name}: the deviation of {name} times √fan_in is {times:.3g}, expected between 0.01 and 4"
            check(label, 0.01 <= times <= 4.0 or not matrix.any())


@clause("INIT-SCALE")
def test_a_new_block_keeps_the_size_of_its_input(block: Subject, draw: Draw) -> None:
    for seed in each_of("seed", SEEDS):
        instance = block.build(**WIDE, seed=seed)
        (x,) = instance.example_inputs(draw, batch=3, tokens=12)
        ratio = float(instance(x).var() / x.var())
        check(f"the variance becomes {ratio:.3g} times the input's, expected 0.01 to 100 times", 0.01 <= ratio <= 100.0)


@clause("INIT-ATTN-SOFT")
def test_a_new_head_looks_at_many_positions(multi_head: Subject, draw: Draw) -> None:
    for seed in each_of("seed", SEEDS):
        instance = multi_head.build(**WIDE, seed=seed)
        weights, sizes = instance.read(), instance.sizes
        x = draw.values(2, 16, sizes["d_model"])
        if multi_head.variant.has_latent:
            q, k, _ = latent_heads(weights, x, sizes["num_heads"], multi_head.variant)
        else:
            q, k = (
                split_heads(linear(weights, "q", x), sizes["num_heads"]),
                split_heads(linear(weights, "k", x), sizes["kv_heads"]),
            )
        given = attention_weights(q, np.repeat(k, sizes["num_heads"] // sizes["kv_heads"], axis=-3))  # (B, H, T, T)
        entropy = float(-(given * np.log(np.maximum(given, 1e-300))).sum(axis=-1).mean())
        uniform = math.log(x.shape[1])
        check(f"the mean entropy is {entropy:.3g} nats, expected more than {uniform / 2:.3g}", entropy > uniform / 2)


@clause("INIT-EMB-STD")
def test_embeddings_begin_between_small_and_of_order_one(model: Subject, draw: Draw) -> None:
    table = model.build(**WIDE, vocab_size=65, num_layers=1, seed=draw.integer(0, 999)).read()["embedding.weight"]
    deviation = float(table.std())
    check(f"the deviation of the embedding is {deviation:.3g}, expected between 0.001 and 2", 1e-3 <= deviation <= 2.0)


@clause("INIT-LOGITS")
def test_a_new_model_is_sure_of_nothing(model: Subject, draw: Draw) -> None:
    for layers, vocabulary, seeds in ((2, 101, SEEDS), (12, draw.integer(1001, 1999), SEEDS[:1])):
        highest = []
        for seed in seeds:
            instance = model.build(
                d_model=32, num_heads=4, d_ff=48, vocab_size=vocabulary, num_layers=layers, seed=seed
            )
            logits = instance(*instance.example_inputs(draw, batch=4, tokens=8))
            check_finite(f"the logits of {layers} new blocks", logits)
            highest.append(float(softmax(logits).max(axis=-1).mean()))
        under(f"{instance.sizes['num_layers']} blocks")
        top, most = float(np.mean(highest)), 20 / instance.sizes["vocab_size"]
        check(f"the most probable id has probability {top:.3g} on average, expected at most {most:.3g}", top <= most)


def _parameters(instance: Instance) -> dict[str, Array]:
    """Return its initial values: the definition's parameters, or its own if they are not bound.

    Unbound arrays may be masks if no framework distinguishes parameters from constants.
    """
    bound = instance.subject.bound
    if bound.rules is not None:
        return instance.read()
    own = {p["name"] for p in instance.trainable if instance.subject.offers("gradients")}
    return {name: array for name, array in instance.read_raw().items() if name in own}


def _begun(instance: Instance, kind: str) -> dict[str, Array]:
    """Return the initial weights or biases of the linear layers."""
    other = ("embedding", "positions", "sinks")
    linear_ones = {n: a for n, a in instance.read().items() if n.endswith("." + kind) and "norm" not in n}
    return {n: a for n, a in linear_ones.items() if n.split(".")[-2] not in other}
