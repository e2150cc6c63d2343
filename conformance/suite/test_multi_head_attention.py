"""Clauses of spec/multi_head_attention.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_hidden,
    check_repeated,
    check_shape,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.averages import (
    check_mean_over_dropout,
    check_varies_in_training,
    drops_what_scores_read,
)
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.for_each_component import without_causal
from conformkit.conformance.evidence.indivisible_widths import check_no_feature_is_dropped
from conformkit.conformance.evidence.influence import check_all_reached, check_sees, influence
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask
from conformkit.spec.scores import within

# --- construction -----------------------------------------------------------------------------------------------------


@clause("MHA-SHAPE")
def test_the_output_has_the_shape_of_the_input(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 1, 2, 4, 12]):
        instance = multi_head.build(d_model=12, num_heads=heads)
        x = drawn(instance, draw, 2, 5)
        out = output(instance, x)
        check_finite("output", out)


@clause("MHA-DIVISIBLE")
def test_no_feature_is_dropped_where_the_heads_do_not_divide_the_width(multi_head: Subject, draw: Draw) -> None:
    fitting = multi_head.sizes(num_heads=4)
    heads = fitting["num_heads"]
    names, shown = multi_head.bound.construct.names(), str(multi_head.bound.construct)
    if heads < 2 or "num_heads" not in names:
        raise NotApplicable.from_sizes("it has a single head, or a fixed number of them")
    if "d_model" not in names or "head_width" in names or "//" in shown:
        raise NotApplicable("it is given the width of a head, so nothing is divided")
    for width in (fitting["d_model"] + 1, 2 * heads - 1):
        sizes = fitting | {"d_model": width, "head_width": width // heads}
        check_no_feature_is_dropped(multi_head, sizes, draw.values(2, multi_head.tokens(5), width))


@clause("MHA-PARAM-COUNT")
def test_the_parameters_are_exactly_the_four_projections(multi_head: Subject) -> None:
    for heads in each_of("heads", [3, 1]):
        check_count(multi_head.build(num_heads=heads))
    multi_head.bound.require_weights()


@clause("MHA-NO-BIAS")
def test_an_input_of_zeros_gives_zeros(multi_head: Subject, draw: Draw) -> None:
    if multi_head.variant.has_latent and multi_head.variant.shifts:
        raise NotApplicable("the norm of its latent has a shift")
    instance = multi_head.build().scatter(draw)
    check_zero("output for x = 0", output(instance, 0.0 * drawn(instance, draw, 2, 5)))


@clause("MHA-T1")
def test_a_sequence_of_one_position_works(multi_head: Subject, draw: Draw) -> None:
    for batch, causal in each_of("batch, causal", [(3, True), (1, True), (3, False)]):
        instance = multi_head.build(causal=causal).scatter(draw)
        one, other = drawn(instance, draw, batch, 1)[:, :1], drawn(instance, draw, batch, 1)[:, :1]
        out = output(instance, one)
        check_finite("output", out)
        check_differs("output for another x", output(instance, other), out, at_least=1e-4)


@clause("MHA-BATCH-INDEP")
def test_batch_elements_do_not_influence_one_another(multi_head: Subject, draw: Draw) -> None:
    for batch, heads, length in each_of("batch, heads, length", [(5, 3, 4), (4, 4, 4), (2, 4, 5)]):
        instance = multi_head.build(d_model=12, num_heads=heads).scatter(draw)
        x = drawn(instance, draw, batch, length)
        before = output(instance, x)
        x[1] = draw.values(*x.shape[1:], scale=5.0)
        after, rest = output(instance, x), [b for b in range(batch) if b != 1]
        check_close("outputs of the other elements", after[rest], before[rest], multi_head.tolerance())
        check_differs("output of the changed element", after[1], before[1], at_least=1e-4)


@clause("MHA-NONCONTIG")
def test_views_with_gaps_give_the_same_result(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    x = drawn(instance, draw, 2, 5)
    check_close(
        "output for a strided input", output(instance, x, strided=True), output(instance, x), multi_head.tolerance()
    )


@clause("MHA-VARLEN")
def test_one_object_serves_any_length_and_batch(multi_head: Subject, draw: Draw) -> None:
    multi_head = multi_head.as_asked
    instance = multi_head.build().scatter(draw)
    fresh = multi_head.build()
    fresh.write_raw(instance.read_raw())
    x = drawn(instance, draw, 4, 9)
    output(instance, x[:2, :3])  # first: what is kept for a whole module would be long enough after the long call
    whole, want = x.shape[1], output(fresh, x)
    lengths = [(2, 3), (4, whole), (1, 1), (3, whole), (4, 6), (4, whole)]
    for batch, length in each_of("batch, length", lengths):
        out = output(instance, x[:batch, :length])
        if length == whole:
            check_close("output after calls of other shapes", out, want[:batch], multi_head.tolerance())


@clause("MHA-WEIGHTS-SHAPE")
def test_returned_weights_have_a_matrix_for_each_head(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    x = drawn(instance, draw, 2, 5)
    weights = instance.call(x).extra
    check("no weights are returned", weights is not None)
    assert weights is not None
    check_shape("returned weights", weights, (2, instance.sizes["num_heads"], x.shape[1], x.shape[1]))
    totals = weights.sum(axis=-1)
    check_close("sum over keys", totals, np.ones_like(totals), multi_head.tolerance())


# --- dropout ----------------------------------------------------------------------------------------------------------


@clause("MHA-DROPOUT-EVAL")
def test_outside_training_nothing_is_dropped(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(dropout=0.5).scatter(draw)
    x = drawn(instance, draw, 3, 5)
    first = output(instance, x, seed=1)
    for seed in (1, 2):
        check_repeated("output of an equal call", output(instance, x, seed=seed), first)
    if multi_head.offers("dropout"):
        without = multi_head.build(dropout=0.0)
        without.write_raw(instance.read_raw())
        check_close("output with a dropout rate of 0.5", first, output(without, x), multi_head.tolerance())


@clause("MHA-DROPOUT-TRAIN")
def test_in_training_dropout_makes_outputs_vary(multi_head: Subject, draw: Draw) -> None:
    if not multi_head.takes("dropout"):
        raise NotApplicable("its rate is an entry of settings that other parts share")
    instance = multi_head.build(dropout=0.5).scatter(draw)
    x = drawn(instance, draw, 3, 5)
    one, other = (instance(x, mode="train", seed=seed) for seed in (1, 2))
    check_varies_in_training("output in training with another seed", one, other, at_least=1e-4)


@clause("MHA-DROPOUT-MEAN")
def test_on_average_dropout_changes_nothing(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(dropout=0.25).scatter(draw)

    def linear() -> tuple[Instance, Array]:
        return instance, drawn(instance, draw, 1, 1)  # alone, a position has the weight 1, whatever its score

    def in_front() -> bool:
        return drops_what_scores_read(multi_head.build(dropout=0.25), draw)

    check_mean_over_dropout(instance, drawn(instance, draw, 1, 4), in_front, linear)


# --- who sees whom ----------------------------------------------------------------------------------------------------


@clause("MHA-CAUSAL-ALL-HEADS")
def test_what_one_head_may_not_see_no_head_may_see(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(num_heads=3, causal=True).randomize(draw)
    projection = instance.weights["out.weight"]
    width = projection.shape[1] // instance.sizes["num_heads"]
    seen = []
    for head in range(instance.sizes["num_heads"]):
        alone = np.zeros_like(projection)
        alone[:, head * width : (head + 1) * width] = projection[:, head * width : (head + 1) * width]
        seen.append(influence(instance.write({"out.weight": alone}), draw) > 0.0)
    for head, through in enumerate(seen):
        differs = np.argwhere(through != seen[0])
        listing = ", ".join(f"input {j} to output {t}" for t, j in differs[:4])
        check(f"heads 0 and {head} hide different inputs", not len(differs), f"only one of them passes {listing}")


@clause("MHA-CAUSAL")
def test_with_causal_on_no_position_sees_a_later_one(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 1]):
        instance = multi_head.build(num_heads=heads, causal=True).scatter(draw)
        multi_head.build(num_heads=heads, causal=False)  # another instance changes nothing
        dependence = influence(instance, draw)
        check_hidden("gradient of output t in input j > t", dependence, causal_mask(len(dependence)))


@clause("MHA-CAUSAL-DEFAULT")
def test_causality_is_on_unless_it_is_switched_off(multi_head: Subject, draw: Draw) -> None:
    instance = without_causal(multi_head).scatter(draw)
    dependence = influence(instance, draw)
    check_hidden("gradient of output t in input j > t", dependence, causal_mask(len(dependence)))


@clause("MHA-CAUSAL-REACH")
def test_a_causal_position_sees_itself_and_everything_before(multi_head: Subject, draw: Draw) -> None:
    dependence = influence(multi_head.build(causal=True).scatter(draw), draw)
    check_sees(dependence, within(len(dependence), multi_head.variant.window))


@clause("MHA-CAUSAL-OFF")
def test_with_causal_off_every_position_sees_every_other(multi_head: Subject, draw: Draw) -> None:
    influence(multi_head.build(causal=True).scatter(draw), draw)  # another instance changes nothing
    dependence = influence(multi_head.build(causal=False).scatter(draw), draw)
    check_sees(dependence, np.ones_like(dependence, np.bool_))


@clause("MHA-PREFIX")
def test_the_outputs_of_a_prefix_are_the_prefix_of_the_outputs(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(causal=True).scatter(draw)
    for longest, prefixes in each_of("longest, prefixes", [(9, (1, 5)), (70, (5, 33, 66))]):
        x = drawn(instance, draw, 2, longest)
        full = output(instance, x)
        for prefix in [n for n in prefixes if n < x.shape[1]]:
            check_close("output", output(instance, x[:, :prefix]), full[:, :prefix], multi_head.tolerance())
    under("the last position 700 times as large: its score is well above any other")
    x = drawn(instance, draw, 4, 7)
    x[:, -1] *= 700.0
    if x.shape[1] > 1:
        check_close("output", output(instance, x)[:, :-1], output(instance, x[:, :-1]), multi_head.tolerance())


@clause("MHA-PERM-EQUIV")
def test_without_causality_permuting_positions_permutes_outputs(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(causal=False).scatter(draw)
    x = drawn(instance, draw, 2, 7)
    order = draw.permutation(x.shape[1])
    check_close("output", output(instance, x[:, order]), output(instance, x)[:, order], multi_head.tolerance())


# --- all together -----------------------------------------------------------------------------------------------------


@clause("MHA-GRAD-ALL")
def test_all_projections_receive_gradient(multi_head: Subject, draw: Draw) -> None:
    check_all_reached(multi_head.build().scatter(draw), draw)


@clause("MHA-GOLDEN")
def test_three_tokens_of_width_four_give_the_worked_example(
    multi_head: Subject, goldens: Callable[[str], list[Golden]]
) -> None:
    check_goldens(multi_head, goldens("MHA-GOLDEN"))


@clause("MHA-ORACLE")
def test_the_output_equals_the_definition(multi_head: Subject, draw: Draw) -> None:
    for width, heads, causal, shapes in (
        (12, 3, True, [(3, 5), (1, 1), (1, 67)]),
        (12, 1, False, [(3, 5), (1, 18)]),
        (8, 2, True, [(2, 2), (1, 34)]),
        (16, 4, False, [(4, 4), (1, 66)]),
        (8, 8, True, [(8, 3), (1, 7)]),
        (15, 5, True, [(5, 6)]),
        (14, 2, False, [(1, 5)]),
        (24, 12, True, [(34, 3)]),
    ):
        instance = multi_head.build(d_model=width, num_heads=heads, causal=causal).randomize(draw)
        for batch, length in shapes:
            under(f"d_model = {width}, num_heads = {heads}, causal = {causal}, batch {batch}, {length} positions")
            x = drawn(instance, draw, batch, length)
            check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())


@clause("MHA-SIZES")
def test_the_output_equals_the_definition_at_every_size(multi_head: Subject, draw: Draw) -> None:
    check_definition_at_sizes(multi_head, draw, after="MHA-ORACLE")
