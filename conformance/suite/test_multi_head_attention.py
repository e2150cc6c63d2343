"""Clauses of spec/multi_head_attention.md."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.averages import check_mean_over_dropout
from conformkit.conformance.evidence.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_refuses,
    check_shape,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.evidence.influence import check_all_reached, check_sees, influence
from conformkit.conformance.evidence.scores import Heads, divisor, telling_positions
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject
from conformkit.conformance.suite.stored import check_goldens
from conformkit.fixtures import Golden
from conformkit.spec.layers import linear
from conformkit.spec.masks import causal_mask
from conformkit.spec.multi_head_attention import split_heads
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.self_attention import self_attention

Array = npt.NDArray[Any]


# --- construction -----------------------------------------------------------------------------------------------------


@clause("MHA-SHAPE")
def test_the_output_has_the_shape_of_the_input(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of([3, 1, 2, 4, 12]):
        instance = multi_head.build(d_model=12, num_heads=heads)
        x = _input(instance, draw, 2, 5)
        out = _out(instance, x)
        check_finite("output", out)


@clause("MHA-DIVISIBLE")
def test_a_width_that_the_heads_do_not_divide_is_refused(multi_head: Subject, draw: Draw) -> None:
    fitting = multi_head.sizes(num_heads=4)
    heads = fitting["num_heads"]
    names, shown = multi_head.bound.construct.names(), str(multi_head.bound.construct)
    if heads < 2 or "num_heads" not in names:
        raise NotApplicable("it has a single head, or a fixed number of them")
    if "d_model" not in names or "head_width" in names or "//" in shown:
        raise NotApplicable("it is told the width of a head, and has nothing to divide")
    for width in (fitting["d_model"] + 1, 2 * heads - 1):
        under(f"d_model = {width}, num_heads = {heads}")
        _check_refused(multi_head, draw, fitting | {"d_model": width}, "a width that is no multiple of the heads")


@clause("MHA-PARAM-COUNT")
def test_the_parameters_are_exactly_the_four_projections(multi_head: Subject) -> None:
    for heads in each_of([3, 1]):
        check_count(multi_head.build(num_heads=heads))
    multi_head.bound.require_weights()


@clause("MHA-NO-BIAS")
def test_an_input_of_zeros_gives_zeros(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    check_zero("output for x = 0", _out(instance, 0.0 * _input(instance, draw, 2, 5)))


@clause("MHA-T1")
def test_a_sequence_of_one_position_works(multi_head: Subject, draw: Draw) -> None:
    for batch, causal in each_of([(3, True), (1, True), (3, False)]):
        instance = multi_head.build(causal=causal).scatter(draw)
        one, other = _input(instance, draw, batch, 1)[:, :1], _input(instance, draw, batch, 1)[:, :1]
        out = _out(instance, one)
        check_finite("output", out)
        check_differs("output for another x", _out(instance, other), out, at_least=1e-4)


@clause("MHA-BATCH-INDEP")
def test_batch_elements_do_not_influence_one_another(multi_head: Subject, draw: Draw) -> None:
    for batch, heads, length in each_of([(5, 3, 4), (4, 4, 4), (2, 4, 5)]):
        instance = multi_head.build(d_model=12, num_heads=heads).scatter(draw)
        x = _input(instance, draw, batch, length)
        before = _out(instance, x)
        x[1] = draw.values(*x.shape[1:], scale=5.0)
        after, rest = _out(instance, x), [b for b in range(batch) if b != 1]
        check_close("outputs of the other elements", after[rest], before[rest], multi_head.tolerance())
        check_differs("output of the changed element", after[1], before[1], at_least=1e-4)


@clause("MHA-NONCONTIG")
def test_views_with_gaps_give_the_same_result(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    x = _input(instance, draw, 2, 5)
    check_close(
        "output for a strided input", _out(instance, x, strided=True), _out(instance, x), multi_head.tolerance()
    )


@clause("MHA-VARLEN")
def test_one_object_serves_any_length_and_batch(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    fresh = multi_head.build()
    fresh.write_raw(instance.read_raw())
    x = _input(instance, draw, 4, 9)
    want = _out(fresh, x)
    for batch, length in each_of([(2, 3), (4, 9), (1, 1), (3, 9), (4, 6), (4, 9)]):
        out = _out(instance, x[:batch, :length])
        if length == 9:
            check_close("output after calls of other shapes", out, want[:batch], multi_head.tolerance())


@clause("MHA-WEIGHTS-SHAPE")
def test_returned_weights_have_a_matrix_for_each_head(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().scatter(draw)
    x = _input(instance, draw, 2, 5)
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
    x = _input(instance, draw, 3, 5)
    first = _out(instance, x, seed=1)
    for seed in (1, 2):
        check_equal("output of an equal call", _out(instance, x, seed=seed), first)
    if multi_head.offers("dropout"):
        without = multi_head.build(dropout=0.0)
        without.write_raw(instance.read_raw())
        check_close("output with a dropout rate of 0.5", first, _out(without, x), multi_head.tolerance())


@clause("MHA-DROPOUT-TRAIN")
def test_in_training_dropout_makes_outputs_vary(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(dropout=0.5).scatter(draw)
    x = _input(instance, draw, 3, 5)
    one, other = (_out(instance, x, mode="train", seed=seed) for seed in (1, 2))
    check_differs("output in training with another seed", one, other, at_least=1e-4)


@clause("MHA-DROPOUT-MEAN")
def test_on_average_dropout_changes_nothing(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(dropout=0.25).scatter(draw)
    check_mean_over_dropout(instance, _input(instance, draw, 1, 4))


# --- heads ------------------------------------------------------------------------------------------------------------


@clause("MHA-OUT-PROJ")
def test_the_concatenated_heads_go_through_the_output_projection(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    x = _input(instance, draw, 2, 5)
    projection = instance.weights["out.weight"]
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "out.bias"})
    before = _out(instance, x)
    opposite = _out(instance.write({"out.weight": -projection}), x)
    check_close("output for the opposite projection", opposite, -before, multi_head.tolerance())
    another = _out(instance.write({"out.weight": projection[::-1]}), x)
    check_close("output for a projection upside down", another, before[..., ::-1], multi_head.tolerance())
    check_zero("output for Wo = 0", _out(instance.write({"out.weight": 0.0 * projection}), x))


@clause("MHA-QKV-DISTINCT")
def test_queries_keys_and_values_each_have_a_projection_that_matters(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    x = _input(instance, draw, 2, 5)
    weights, before = dict(instance.weights), _out(instance, x)
    for name in each_of(["q.weight", "k.weight", "v.weight"]):
        changed = draw.values(*weights[name].shape, scale=0.5)
        check_differs(
            f"output when {name} changes", _out(instance.write(weights | {name: changed}), x), before, at_least=1e-4
        )


@clause("MHA-CONCAT-ORDER")
def test_heads_are_put_side_by_side_in_their_order(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of([3, 2]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=False).randomize(draw)
        _project_by(instance, lambda m, n: np.eye(m, n) * np.arange(1, m + 1)[:, None])
        x = _input(instance, draw, 3, 1)[:, :1]
        check_close("output of one position", _out(instance, x), instance.expected(x), multi_head.tolerance())


@clause("MHA-SPLIT-POSITIONS")
def test_splitting_into_heads_leaves_positions_where_they_are(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of([3, 2, 6]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=True).scatter(draw)
        x = _input(instance, draw, 2, 5)
        out = _out(instance, np.repeat(x[:, :1], x.shape[1], axis=1))
        # The first output alone may come of nothing, which is what MHA-CAUSAL-REACH is about.
        want = np.broadcast_to(out[:, -1:], out[:, 1:].shape)
        check_close("output for equal positions, from the second on", out[:, 1:], want, multi_head.tolerance())


@clause("MHA-SPLIT-MERGE")
def test_merging_heads_undoes_the_split(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of([3, 4, 2]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=False).randomize(draw)
        instance.write({name: 0.0 * array for name, array in instance.weights.items() if name.startswith("q.")})
        _project_by(instance, np.eye)
        x = _input(instance, draw, 2, 5)
        check_close("last output", _out(instance, x)[:, -1], instance.expected(x)[:, -1], multi_head.tolerance())


@clause("MHA-HEADS-INDEPENDENT")
def test_each_head_uses_its_own_projections_only(multi_head: Subject, draw: Draw) -> None:
    instance = _several_heads(multi_head, draw)
    x = _input(instance, draw, 2, 5)
    for name in ("q.weight", "k.weight", "v.weight"):
        _check_owner(instance, draw, x, name, 1)


@clause("MHA-HEAD-SLICES")
def test_a_head_owns_the_same_slice_of_queries_keys_and_values(multi_head: Subject, draw: Draw) -> None:
    instance = _several_heads(multi_head, draw)
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "v.bias"})
    x = _input(instance, draw, 2, 5)
    weights, before = dict(instance.weights), _out(instance, x)
    for head in range(instance.sizes["kv_heads"]):
        under(f"values of head {head} set to 0")
        rows, features = _owned(instance, "v.weight", head)
        silent = weights["v.weight"].copy()
        silent[rows] = 0.0
        want = before.copy()
        want[..., features] = 0.0
        check_close("output", _out(instance.write({"v.weight": silent}), x), want, multi_head.tolerance())


@clause("MHA-LINEAR-VO")
def test_the_output_is_linear_in_the_value_projection(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name in {"v.bias", "out.bias"}})
    x = _input(instance, draw, 2, 5)
    one = instance.weights["v.weight"]
    other = draw.values(*one.shape, scale=0.5)
    outs = [_out(instance.write({"v.weight": weight}), x) for weight in (one, other, 2.0 * one - 0.5 * other)]
    check_close("output for 2 Wv - 0.5 Wv'", outs[2], 2.0 * outs[0] - 0.5 * outs[1], multi_head.tolerance(2))


# --- who sees whom ----------------------------------------------------------------------------------------------------


@clause("MHA-CAUSAL-ALL-HEADS")
def test_what_one_head_may_not_see_no_head_may_see(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(num_heads=3, causal=True).randomize(draw)
    projection, width = instance.weights["out.weight"], instance.sizes["head_width"]
    seen = []
    for head in range(instance.sizes["num_heads"]):
        alone = np.zeros_like(projection)
        alone[:, head * width : (head + 1) * width] = projection[:, head * width : (head + 1) * width]
        seen.append(influence(instance.write({"out.weight": alone}), draw) > 0.0)
    for head, through in enumerate(seen):
        differs = np.argwhere(through != seen[0])
        told = ", ".join(f"input {j} to output {t}" for t, j in differs[:4])
        check(f"heads 0 and {head} hide different inputs", not len(differs), f"only one of them passes {told}")


@clause("MHA-CAUSAL")
def test_with_causal_on_no_position_sees_a_later_one(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of([3, 1]):
        instance = multi_head.build(num_heads=heads, causal=True).scatter(draw)
        multi_head.build(num_heads=heads, causal=False)  # another instance changes nothing
        dependence = influence(instance, draw)
        check_zero("gradient of output t in input j > t", np.triu(dependence, 1))


@clause("MHA-CAUSAL-REACH")
def test_a_causal_position_sees_itself_and_everything_before(multi_head: Subject, draw: Draw) -> None:
    dependence = influence(multi_head.build(causal=True).scatter(draw), draw)
    check_sees(dependence, causal_mask(len(dependence)))


@clause("MHA-CAUSAL-OFF")
def test_with_causal_off_every_position_sees_every_other(multi_head: Subject, draw: Draw) -> None:
    dependence = influence(multi_head.build(causal=False).scatter(draw), draw)
    check_sees(dependence, np.ones_like(dependence, np.bool_))


@clause("MHA-PREFIX")
def test_the_outputs_of_a_prefix_are_the_prefix_of_the_outputs(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(causal=True).scatter(draw)
    for longest, prefixes in each_of([(9, (1, 5)), (70, (5, 33, 66))]):
        x = _input(instance, draw, 2, longest)
        full = _out(instance, x)
        for prefix in [n for n in prefixes if n < x.shape[1]]:
            check_close("output", _out(instance, x[:, :prefix]), full[:, :prefix], multi_head.tolerance())


@clause("MHA-PERM-EQUIV")
def test_without_causality_permuting_positions_permutes_outputs(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(causal=False).scatter(draw)
    x = _input(instance, draw, 2, 7)
    order = draw.permutation(x.shape[1])
    check_close("output", _out(instance, x[:, order]), _out(instance, x)[:, order], multi_head.tolerance())


# --- scores -----------------------------------------------------------------------------------------------------------


@clause("MHA-SCALE-DHEAD")
def test_scores_are_divided_by_the_root_of_a_heads_width(multi_head: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (12, 2), (20, 2), (16, 1)):
        instance = multi_head.build(d_model=width, num_heads=heads).randomize(draw)
        _project_by(instance, np.eye)
        under(f"d_model = {instance.sizes['d_model']}, num_heads = {instance.sizes['num_heads']}")
        x, apart, values = telling_positions(draw, instance.sizes["d_model"], _head_0(instance))
        own = min(instance.sizes["head_width"], instance.sizes["d_model"])
        out = _out(instance, x)[0, 1, :own] - instance.weights.get("out.bias", np.zeros(own))[:own]
        got = divisor(out, values[:, :own], apart)
        check_close(
            "the number that scores are divided by",
            got,
            np.sqrt(instance.sizes["head_width"]),
            multi_head.tolerance(20),
        )


@clause("MHA-IDENTICAL-HEADS")
def test_heads_with_the_same_weights_give_the_same_result(
    multi_head: Subject, draw: Draw, goldens: Callable[[str], list[Golden]]
) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    width = instance.sizes["head_width"]
    repeated = {
        name: np.concatenate([a[:width]] * (len(a) // width))
        for name, a in instance.weights.items()
        if name[0] in "qkv"
    }
    instance.write(repeated | {name: 0.0 * a for name, a in instance.weights.items() if name == "out.bias"})
    _project_by(instance, np.eye)
    out = _out(instance, x := _input(instance, draw, 2, 5))
    for head in range(1, instance.sizes["num_heads"]):
        own = out[..., head * width : (head + 1) * width]
        check_close(f"features of head {head}", own, out[..., :width], multi_head.tolerance())
    check_close("output", out, instance.expected(x), multi_head.tolerance())
    with contextlib.suppress(NotApplicable):
        check_goldens(multi_head, goldens("MHA-IDENTICAL-HEADS"))


@clause("MHA-HEAD-PERM")
def test_exchanging_heads_with_their_columns_changes_nothing(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    width = instance.sizes["head_width"]
    order = draw.permutation(instance.sizes["num_heads"])
    rows = np.concatenate([np.arange(head * width, (head + 1) * width) for head in order])
    x = _input(instance, draw, 2, 5)
    before = _out(instance, x)
    moved = {name: array[rows] for name, array in instance.weights.items() if name[0] in "qkv"}
    if "out.weight" in instance.weights:
        instance.write(moved | {"out.weight": instance.weights["out.weight"][:, rows]})
    else:
        instance.write(moved)
        before = before[..., rows]
    check_close("output with the heads in another order", _out(instance, x), before, multi_head.tolerance())


@clause("MHA-H1-IS-SA")
def test_one_head_is_self_attention_then_the_output_projection(multi_head: Subject, draw: Draw) -> None:
    for width, causal in each_of([(12, True), (7, False)]):
        instance = multi_head.build(d_model=width, num_heads=1, causal=causal).randomize(draw)
        if instance.sizes["num_heads"] != 1:
            raise NotApplicable("its declared limits exclude a single head")
        x = _input(instance, draw, 2, 5)
        mixed = self_attention(instance.weights, x, causal=instance.sizes["causal"])
        check_close("output", _out(instance, x), linear(instance.weights, "out", mixed), multi_head.tolerance())


# --- grouped queries --------------------------------------------------------------------------------------------------


@clause("GQA-DIVISIBLE")
def test_key_value_heads_that_do_not_divide_the_heads_are_refused(multi_head: Subject, draw: Draw) -> None:
    fitting = _grouped(multi_head)
    if "kv_heads" not in multi_head.bound.construct.names():
        raise NotApplicable("its number of key/value heads cannot be chosen")
    heads = fitting["num_heads"]
    odd = next((n for n in range(heads - 1, 1, -1) if heads % n), None)
    if odd is None:
        raise NotApplicable("every number divides its heads")
    _check_refused(multi_head, draw, fitting | {"kv_heads": odd}, f"{odd} key/value heads for {heads} heads")


@clause("GQA-PARAM-COUNT")
def test_keys_and_values_are_projected_to_their_own_heads_only(multi_head: Subject) -> None:
    check_count(multi_head.construct(_grouped(multi_head)))


@clause("GQA-EXPAND")
def test_each_key_value_head_serves_consecutive_query_heads(multi_head: Subject, draw: Draw) -> None:
    instance = _side_by_side(multi_head.construct(_grouped(multi_head)).randomize(draw))
    x = _input(instance, draw, 2, 5)
    under("one position, where the output is the values")
    check_close("output", _out(instance, x[:, :1]), instance.expected(x[:, :1]), multi_head.tolerance())
    for head in range(instance.sizes["kv_heads"]):
        if _owned(instance, "k.weight", head)[1].stop <= x.shape[-1]:  # else the identity cuts its features off
            _check_owner(instance, draw, x, "k.weight", head)


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
    for width, heads, causal in each_of([(12, 3, True), (12, 1, False), (8, 2, True), (16, 4, False), (8, 8, True)]):
        instance = multi_head.build(d_model=width, num_heads=heads, causal=causal).randomize(draw)
        x = _input(instance, draw, 3, 5)
        check_close("output", _out(instance, x), instance.expected(x), multi_head.tolerance())


# --- how the above is measured ----------------------------------------------------------------------------------------


def _input(instance: Instance, draw: Draw, batch: int, length: int) -> Array:
    return draw.values(batch, instance.subject.tokens(length), instance.sizes["d_model"])


def _out(instance: Instance, x: Array, **options: Any) -> Array:
    """Return the output, its shape checked."""
    out = instance(x, **options)
    check_shape("output", out, x.shape)
    return out


def _check_refused(subject: Subject, draw: Draw, sizes: Mapping[str, Any], what: str) -> None:
    """Check that nothing can be constructed with these sizes, or at least not called."""
    x = draw.values(2, subject.tokens(5), sizes["d_model"])
    check_refuses(what, lambda: subject.construct(sizes)(x))


def _project_by(instance: Instance, make: Callable[[int, int], Array]) -> None:
    """Write an output projection made for its extents, where there is one."""
    if "out.weight" in instance.weights:
        instance.write({"out.weight": make(*instance.weights["out.weight"].shape)})


def _several_heads(subject: Subject, draw: Draw) -> Instance:
    """Return an instance of three heads or so, whose output is the heads side by side."""
    instance = subject.build(d_model=12, num_heads=3).randomize(draw)
    if instance.sizes["num_heads"] < 2:
        raise NotApplicable("it has a single head")
    return _side_by_side(instance)


def _side_by_side(instance: Instance) -> Instance:
    """Write the identity as output projection, without a bias."""
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "out.bias"})
    _project_by(instance, np.eye)
    return instance


def _check_owner(instance: Instance, draw: Draw, x: Array, name: str, head: int) -> None:
    """Check that changing one head's rows of a projection changes the features that these serve, and no others."""
    under(f"the rows of head {head} of {name} changed")
    weights, before = dict(instance.weights), _out(instance, x)
    rows, features = _owned(instance, name, head)
    changed = weights[name].copy()
    changed[rows] = draw.values(*changed[rows].shape)
    after = _out(instance.write(weights | {name: changed}), x)
    instance.write(weights)
    others = np.ones(x.shape[-1], np.bool_)
    others[features] = False
    check_close("features of the other heads", after[..., others], before[..., others], instance.subject.tolerance())
    check_differs("features of its own", after[..., features], before[..., features], at_least=1e-4)


def _owned(instance: Instance, name: str, head: int) -> tuple[slice, slice]:
    """Return a head's rows of a projection, and the features of the concatenation that they serve."""
    heads, kv_heads, width = (instance.sizes[n] for n in ("num_heads", "kv_heads", "head_width"))
    head = min(head, kv_heads - 1) if name[0] in "kv" else head
    served = heads // kv_heads if name[0] in "kv" else 1
    return slice(head * width, (head + 1) * width), slice(head * served * width, (head + 1) * served * width)


def _grouped(subject: Subject) -> dict[str, Any]:
    """Return sizes with several heads to a key/value head."""
    for heads in (6, 4, 8):
        sizes = subject.sizes(d_model=24, num_heads=heads)
        if sizes["kv_heads"] < sizes["num_heads"]:
            return sizes
    raise NotApplicable("it has as many key/value heads as heads")


def _head_0(instance: Instance) -> Heads:
    """Return how x becomes the queries, keys and values of the first head."""
    variant, weights = instance.subject.variant, instance.weights
    counts = {"q": instance.sizes["num_heads"], "k": instance.sizes["kv_heads"], "v": instance.sizes["kv_heads"]}

    def projected(x: Array) -> tuple[Array, Array, Array]:
        q, k, v = (split_heads(linear(weights, name, x), count)[0, 0] for name, count in counts.items())
        return (rotate(q, variant), rotate(k, variant), v) if variant.positions == "rotary" else (q, k, v)

    return projected
