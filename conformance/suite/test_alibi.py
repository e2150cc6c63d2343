"""Clauses of spec/alibi.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.evidence.sublayers import check_same_everywhere
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.scores import alibi_slopes, within


def shown_weights(instance: Instance, head: int) -> Array:
    """Return a head's weights (T, T) where all queries are zero: feature 1 + t marks token t, and its value shows it.

    Raises NotApplicable if fewer than three tokens can be told apart.
    """
    width, depth = instance.sizes["d_model"], instance.sizes["head_width"]
    tokens = instance.subject.tokens(5)
    shown = min(tokens, width - 1, depth)
    if shown < 3:
        raise NotApplicable.from_sizes("fewer than three positions can be told apart")
    weights = zeros(instance, "")
    for start in range(0, instance.sizes["kv_heads"] * depth, depth):
        weights["v.weight"][start : start + shown, 1 : 1 + shown] = np.eye(shown)
    place = head * depth
    if "out.weight" in weights:
        weights["out.weight"][:shown, place : place + shown] = np.eye(shown)
        place = 0
    x = np.zeros((1, tokens, width))
    x[0, np.arange(shown), 1 + np.arange(shown)] = 1.0
    return np.asarray(instance.write(weights)(x)[0, :shown, place : place + shown])


def check_slopes(multi_head: Subject, heads: int) -> None:
    """Check that the weights of each of so many heads fall by its slope, from the query's own position backwards."""
    instance = multi_head.build(d_model=8 * heads, num_heads=heads)
    heads = instance.sizes["num_heads"]
    slopes = alibi_slopes(heads, multi_head.variant)
    for head in range(heads):
        seen = shown_weights(instance, head)
        visible = within(len(seen), multi_head.variant.window)
        under(f"head {head} of {heads}")
        check("a visible key has no weight", bool((seen[visible] > 0).all()))
        for distance in range(1, min(len(seen), multi_head.variant.window or len(seen))):
            fall = np.log(np.diagonal(seen)[distance:]) - np.log(np.diagonal(seen, -distance))
            want = np.full_like(fall, slopes[head] * distance)
            allowed = 100 * multi_head.tolerance()
            check_close(f"the fall of scores over a distance of {distance}", fall, want, allowed, scale=1.0)


@clause("ALIBI-SLOPES")
def test_scores_of_a_power_of_2_of_heads_fall_by_the_published_slopes(multi_head: Subject) -> None:
    for heads in each_of("heads", [4, 2, 8]):
        if multi_head.sizes(d_model=8 * heads, num_heads=heads)["num_heads"] == heads:
            check_slopes(multi_head, heads)


@clause("ALIBI-SLOPES-ODD")
def test_scores_of_other_numbers_of_heads_fall_as_declared(multi_head: Subject) -> None:
    for heads in each_of("heads", [3, 6, 5]):
        check_slopes(multi_head, heads)


@clause("ALIBI-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, causal in each_of("heads, causal", [(3, True), (4, True), (3, False)]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
        x = drawn(instance, draw, 2, 6)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())


@clause("ALIBI-ALONE")
def test_with_silent_attention_an_id_gives_the_same_logits_everywhere(model: Subject, draw: Draw) -> None:
    check_same_everywhere(model, draw)
