"""Clauses of spec/cost.md."""

from __future__ import annotations

import contextlib
import math

from conformkit.conformance.assertions.checks import NotApplicable, check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.for_each_component import each, takes
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause


@clause("COST-NO-LEAK")
def test_what_an_object_holds_does_not_grow_from_call_to_call(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, num_layers=1)
        modes = ["eval", "train", "eval"] if subject.offers("modes") else ["eval"] * 3
        for mode in modes[:2]:
            instance.call(*inputs, mode=mode, seed=1, watch=False)
        before = _held(instance)
        for mode in modes:
            instance.call(*inputs, mode=mode, seed=1)
        label = f"{subject.name} holds {_held(instance)} numbers after three more calls, {before} before them"
        check(label, _held(instance) <= before)


@clause("COST-STATE-SIZE")
def test_constants_are_no_larger_than_masks_and_a_few_tables(model: Subject, draw: Draw) -> None:
    if not takes(model, "block_size"):
        raise NotApplicable("its constructor takes no block_size", lacks="block-size")
    short, long = (model.build(block_size=size, d_model=12, num_heads=3, num_layers=2) for size in (8, 40))
    one, other, layers = short.sizes["block_size"], long.sizes["block_size"], long.sizes["num_layers"]
    if one == other:
        raise NotApplicable.from_sizes("its limits allow one block size only")
    grown = _constants(long, draw) - _constants(short, draw)
    masks = (layers * long.sizes["num_heads"] + 1) * (other**2 - one**2)
    tables = 4 * (layers + 1) * (other - one) * long.sizes["d_model"]
    label = f"its constants grow by {grown} numbers when block_size grows from {one} to {other}"
    check(f"{label}, expected at most {masks + tables}", grown <= masks + tables)


@clause("COST-MASK-NOT-HUGE")
def test_the_heads_share_one_mask(model: Subject, draw: Draw) -> None:
    few, many = (model.build(block_size=24, d_model=12, num_heads=heads, num_layers=1) for heads in (2, 6))
    if few.sizes["num_heads"] == many.sizes["num_heads"]:
        raise NotApplicable.from_sizes("its limits allow one number of heads only")
    own = [_constants(instance, draw) for instance in (few, many)]
    heads = [instance.sizes["num_heads"] for instance in (few, many)]
    label = f"its constants are {own[0]} numbers with {heads[0]} heads, {own[1]} with {heads[1]}"
    check(label, own[1] <= own[0])


def _constants(instance: Instance, draw: Draw) -> int:
    """Return how many numbers are held besides the definition's parameters, after a call and generation."""
    inputs = instance.example_inputs(draw)
    instance(*inputs)
    if instance.subject.offers("generate"):
        with contextlib.suppress(ImplementationFailure):  # clauses on generation report it
            instance.generate(inputs[0], 2, greedy=True)
    return _held(instance) - sum(math.prod(parameter.shape) for parameter in instance.canonical.values())


def _held(instance: Instance) -> int:
    """Return how many numbers its arrays have, shared memory counted once."""
    reply = instance.subject.link.request({"op": "parameters", "handle": instance.handle}, {})
    return sum(math.prod(p["shape"]) for p in reply.header["parameters"] if p["alias"] is None and not p["lazy"])
