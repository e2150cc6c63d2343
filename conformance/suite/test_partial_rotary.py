"""Clauses of spec/partial_rotary.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, check_differs, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rotation_angles import check_angles, pair_places
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.rotary import frequencies, rotated_width

FAR = 0.05
"""A pair shows its rotation if it turns by so many radians over the sequence."""


def with_queries_in(instance: Instance, features: list[int]) -> dict[str, Array]:
    """Return weights that leave these features of each head's queries, and zero in the others."""
    depth = instance.sizes["head_width"]
    kept = np.isin(np.arange(instance.sizes["num_heads"] * depth) % depth, features)
    own = instance.weights
    return {name: 3.0 * own[name] * kept.reshape(-1, *[1] * (own[name].ndim - 1)) for name in own if name[:2] == "q."}


def last_outputs(multi_head: Subject, draw: Draw, instance: Instance) -> tuple[Array, Array]:
    """Return the last output, and that of the same tokens in another order; the last one sees all that move."""
    length = multi_head.tokens(8)
    seen = min(multi_head.variant.window or length, length)
    if seen < 3:
        raise NotApplicable.from_sizes("the last query sees fewer than three keys")
    x = draw.values(2, length, instance.sizes["d_model"])
    order = np.r_[: length - seen, np.roll(np.arange(length - seen, length - 1), 1), length - 1]
    return instance(x)[:, -1], instance(x[:, order])[:, -1]


@clause("RPART-REST")
def test_queries_behind_the_rotated_part_see_no_positions(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [2, 1]):
        instance = multi_head.build(d_model=16 * heads, num_heads=heads).randomize(draw)
        depth = instance.sizes["head_width"]
        turned = rotated_width(depth, multi_head.variant)
        under(f"{turned} of a head's {depth} features rotate")
        instance.write(with_queries_in(instance, [*range(turned, depth)]))
        before, after = last_outputs(multi_head, draw, instance)
        check_close("the last output, earlier tokens permuted,", after, before, multi_head.tolerance())


@clause("RPART-FIRST")
def test_queries_in_each_pair_of_the_rotated_part_see_positions(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=32, num_heads=2).randomize(draw)
    depth, own = instance.sizes["head_width"], instance.weights
    turned = rotated_width(depth, multi_head.variant)
    for pair, frequency in enumerate(frequencies(turned, multi_head.variant)):
        places = pair_places(pair, depth, multi_head.variant)
        under(f"queries in the features {places[0]} and {places[1]} of a head's {depth}, {turned} of which rotate")
        before, after = last_outputs(multi_head, draw, instance.write({**own, **with_queries_in(instance, [*places])}))
        instance.write(own)
        if multi_head.tokens(8) * frequency >= FAR:
            check_differs("the last output, earlier tokens permuted,", after, before, at_least=1e-5)


@clause("RPART-ANGLES")
def test_a_pair_turns_by_the_frequency_of_its_place_in_the_rotated_part(multi_head: Subject) -> None:
    instance = multi_head.build(d_model=32, num_heads=2)
    check_angles(instance)
