"""Clauses of spec/heads.md."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    check_close,
    check_differs,
    check_zero,
    each_of,
    supposing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.suppositions import Slips
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.neutral_weights import open_share, zeros
from conformkit.conformance.evidence.rows import check_sizes_refused, drawn, output
from conformkit.conformance.evidence.scores import HeadProjection, divisor, telling_positions
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.heads import split_heads
from conformkit.spec.layers import linear
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.self_attention import self_attention

# --- heads ------------------------------------------------------------------------------------------------------------


@clause("MHA-OUT-PROJ")
def test_the_concatenated_heads_go_through_the_output_projection(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    x = drawn(instance, draw, 2, 5)
    projection = instance.weights["out.weight"]
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "out.bias"})
    before = output(instance, x)
    opposite = output(instance.write({"out.weight": -projection}), x)
    check_close("output for the opposite projection", opposite, -before, multi_head.tolerance())
    another = output(instance.write({"out.weight": projection[::-1]}), x)
    check_close("output for a projection upside down", another, before[..., ::-1], multi_head.tolerance())
    check_zero("output for Wo = 0", output(instance.write({"out.weight": 0.0 * projection}), x))


@clause("MHA-QKV-DISTINCT")
def test_queries_keys_and_values_each_have_a_projection_that_matters(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    x = drawn(instance, draw, 2, 5)
    weights, before = dict(instance.weights), output(instance, x)
    for name in each_of("name", ["q.weight", "k.weight", "v.weight"]):
        changed = draw.values(*weights[name].shape, scale=0.5)
        check_differs(
            f"output when {name} changes", output(instance.write(weights | {name: changed}), x), before, at_least=1e-4
        )


@clause("MHA-CONCAT-ORDER")
def test_heads_are_put_side_by_side_in_their_order(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 2]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=False).randomize(draw)
        _project_by(instance, lambda m, n: np.eye(m, n) * np.arange(1, m + 1)[:, None])
        x = drawn(instance, draw, 3, 1)[:, :1]
        check_close("output of one position", output(instance, x), instance.expected(x), multi_head.tolerance())


@clause("MHA-SPLIT-POSITIONS")
def test_splitting_into_heads_leaves_positions_where_they_are(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 2, 6]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=True).scatter(draw)
        x = drawn(instance, draw, 2, 5)
        out = output(instance, np.repeat(x[:, :1], x.shape[1], axis=1))
        # The first output may see nothing at all; MHA-CAUSAL-REACH judges that.
        want = np.broadcast_to(out[:, -1:], out[:, 1:].shape)
        supposing(_of_sums(instance, x, out))
        check_close("output for equal positions, from the second on", out[:, 1:], want, multi_head.tolerance())


def _of_sums(instance: Instance, x: Array, out: Array) -> Slips:
    """Return the outputs for equal positions if the weights of a causal query do not sum to 1: then it is no split."""
    length = x.shape[1]
    seen = np.arange(1, length + 1)
    sums = {
        "if the softmax runs over the queries, not over the keys": np.cumsum(1.0 / seen[::-1]),
        "if later keys are hidden after the softmax, so that weights do not sum to 1": seen / length,
        "if weights are divided by the number of keys once more": 1.0 / seen,
        "if the values of all keys are added up": 1.0 * seen,
    }
    return {words: partial(_summing_to, instance, x, out, each) for words, each in sums.items()}


def _summing_to(instance: Instance, x: Array, out: Array, sums: Array) -> Array:
    """Return the outputs from the second on if values count so many times: what they are is seen at two positions."""
    alone, apart = output(instance, x[:, :1]), int(np.abs(sums - 1.0).argmax())
    values = (out[:, apart : apart + 1] - alone) / (sums[apart] - 1.0)
    return np.asarray(alone + (sums[1:, None] - 1.0) * values)


@clause("MHA-SPLIT-MERGE")
def test_merging_heads_undoes_the_split(multi_head: Subject, draw: Draw) -> None:
    for width, heads in each_of("width, heads", [(12, 3), (12, 4), (12, 2), (15, 3), (10, 10)]):
        instance = multi_head.build(d_model=width, num_heads=heads, causal=False).randomize(draw)
        instance.write(
            {
                name: 0.0 * array
                for name, array in instance.weights.items()
                if name.startswith(("q.", "q_norm.", "q_rotary."))
            }
        )
        _project_by(instance, np.eye)
        x = drawn(instance, draw, 2, 5)
        check_close("last output", output(instance, x)[:, -1], instance.expected(x)[:, -1], multi_head.tolerance())


@clause("MHA-HEADS-INDEPENDENT")
def test_each_head_uses_its_own_projections_only(multi_head: Subject, draw: Draw) -> None:
    instance = _several_heads(multi_head, draw)
    x = drawn(instance, draw, 2, 5)
    for name in ("q.weight", "k.weight", "v.weight"):
        _check_owner(instance, draw, x, name, 1)


@clause("MHA-HEAD-SLICES")
def test_a_head_owns_the_same_slice_of_queries_keys_and_values(multi_head: Subject, draw: Draw) -> None:
    instance = _several_heads(multi_head, draw)
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "v.bias"})
    x = drawn(instance, draw, 2, 5)
    weights, before = dict(instance.weights), output(instance, x)
    for head in range(instance.sizes["kv_heads"]):
        under(f"values of head {head} set to 0")
        rows, features = _owned(instance, "v.weight", head)
        silent = weights["v.weight"].copy()
        silent[rows] = 0.0
        want = before.copy()
        want[..., features] = 0.0
        check_close("output", output(instance.write({"v.weight": silent}), x), want, multi_head.tolerance())


@clause("MHA-LINEAR-VO")
def test_the_output_is_linear_in_the_value_projection(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build().randomize(draw)
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name in {"v.bias", "out.bias"}})
    x = drawn(instance, draw, 2, 5)
    one = instance.weights["v.weight"]
    other = draw.values(*one.shape, scale=0.5)
    outs = [output(instance.write({"v.weight": weight}), x) for weight in (one, other, 2.0 * one - 0.5 * other)]
    check_close("output for 2 Wv - 0.5 Wv'", outs[2], 2.0 * outs[0] - 0.5 * outs[1], multi_head.tolerance(2))
    large = 2.0 ** int(np.log2(multi_head.up_to(2.0**20)))
    for factor in (large, 1.0 / large):
        out = output(instance.write({"v.weight": factor * one}), x)
        check_close(f"output for {factor:.3g} Wv", out, factor * outs[0], multi_head.tolerance())


# --- scores -----------------------------------------------------------------------------------------------------------


@clause("MHA-SCALE-DHEAD")
def test_scores_are_divided_by_the_root_of_a_heads_width(multi_head: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (12, 2), (20, 2), (16, 1)):
        instance = multi_head.build(d_model=width, num_heads=heads).randomize(draw)
        _project_by(instance, np.eye)
        turned = multi_head.variant.positions == "rotary"
        instance.write(zeros(instance, "k.bias") if turned else {})
        under(f"d_model = {instance.sizes['d_model']}, num_heads = {instance.sizes['num_heads']}")
        # a key of zeros and one in the query's own position: no angle has a part in the difference
        x, apart, values = telling_positions(draw, instance.sizes["d_model"], _head_0(instance), from_zero=turned)
        own = min(instance.sizes["head_width"], instance.sizes["d_model"])
        out = output(instance, x)[0, 1, :own] - instance.weights.get("out.bias", np.zeros(own))[:own]
        got = divisor(out, values[:, :own], apart)
        check_close(
            "the divisor of the scores",
            got,
            np.sqrt(instance.sizes["head_width"] if multi_head.variant.score_scale else 1.0),
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
    out = output(instance, x := drawn(instance, draw, 2, 5))
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
    x = drawn(instance, draw, 2, 5)
    before = output(instance, x)
    moved = {n: array[rows] for n, array in instance.weights.items() if n[0] in "qkv" and len(array) == len(rows)}
    if "out.weight" in instance.weights:
        instance.write(moved | {"out.weight": instance.weights["out.weight"][:, rows]})
    else:
        instance.write(moved)
        before = before[..., rows]
    check_close("output with the heads in another order", output(instance, x), before, multi_head.tolerance())


@clause("MHA-H1-IS-SA")
def test_one_head_is_self_attention_then_the_output_projection(multi_head: Subject, draw: Draw) -> None:
    for width, causal in each_of("width, causal", [(12, True), (7, False)]):
        instance = multi_head.build(d_model=width, num_heads=1, causal=causal).randomize(draw)
        if instance.sizes["num_heads"] != 1:
            raise NotApplicable.from_sizes("its declared limits exclude a single head")
        x = drawn(instance, draw, 2, 5)
        mixed = self_attention(instance.weights, x, causal=instance.sizes["causal"])
        check_close("output", output(instance, x), linear(instance.weights, "out", mixed), multi_head.tolerance())


# --- grouped queries --------------------------------------------------------------------------------------------------


@clause("GQA-DIVISIBLE")
def test_key_value_heads_that_do_not_divide_the_heads_are_refused(multi_head: Subject, draw: Draw) -> None:
    fitting = _grouped(multi_head)
    if "kv_heads" not in multi_head.bound.construct.names():
        raise NotApplicable("its number of key/value heads cannot be chosen")
    heads = fitting["num_heads"]
    odd = next((n for n in range(heads - 1, 1, -1) if heads % n), None)
    if odd is None:
        raise NotApplicable.from_sizes("every number divides its heads")
    check_sizes_refused(multi_head, draw, fitting | {"kv_heads": odd}, f"{odd} key/value heads for {heads} heads")


@clause("GQA-PARAM-COUNT")
def test_keys_and_values_are_projected_to_their_own_heads_only(multi_head: Subject) -> None:
    check_count(multi_head.construct(_grouped(multi_head)))


@clause("GQA-EXPAND")
def test_each_key_value_head_serves_consecutive_query_heads(multi_head: Subject, draw: Draw) -> None:
    instance = _side_by_side(multi_head.construct(_grouped(multi_head)).randomize(draw))
    x = drawn(instance, draw, 2, 5)
    kept = _keys_are_served(instance, draw, x)
    under(f"one position, where the output is the values; keys serve {'the right' if kept else 'other'} query heads")
    check_close("output", output(instance, x[:, :1]), instance.expected(x[:, :1]), multi_head.tolerance())
    _check_keys(instance, draw, x)


# --- how the above is measured ----------------------------------------------------------------------------------------


def _project_by(instance: Instance, make: Callable[[int, int], Array]) -> None:
    """Write an output projection of its shape, if it has one, sinks that take nothing, and gates that are the same."""
    instance.write(zeros(instance, "sinks") | zeros(instance, "output_gate."))
    if "out.weight" in instance.weights:
        made = make(*instance.weights["out.weight"].shape)
        instance.write({"out.weight": made / open_share(instance.subject.variant)})


def _several_heads(subject: Subject, draw: Draw) -> Instance:
    """Return an instance of three heads or so, whose output is the heads side by side."""
    instance = subject.build(d_model=12, num_heads=3).randomize(draw)
    if instance.sizes["num_heads"] < 2:
        raise NotApplicable.from_sizes("it has a single head")
    return _side_by_side(instance)


def _side_by_side(instance: Instance) -> Instance:
    """Write the identity as output projection, without a bias."""
    instance.write({name: 0.0 * array for name, array in instance.weights.items() if name == "out.bias"})
    _project_by(instance, np.eye)
    return instance


def _check_keys(instance: Instance, draw: Draw, x: Array) -> None:
    """Check that each key head serves its own query heads."""
    for head in range(instance.sizes["kv_heads"]):
        if _owned(instance, "k.weight", head)[1].stop <= x.shape[-1]:  # otherwise the identity cuts features off
            _check_owner(instance, draw, x, "k.weight", head)


def _keys_are_served(instance: Instance, draw: Draw, x: Array) -> bool:
    """Whether keys are right, so that a failure of values tells whether both are repeated alike."""
    with contextlib.suppress(ClauseFailure):
        _check_keys(instance, draw, x)
        return True
    return False


def _check_owner(instance: Instance, draw: Draw, x: Array, name: str, head: int) -> None:
    """Check that changing one head's rows of a projection changes the features that these serve, and no others."""
    under(f"the rows of head {head} of {name} changed")
    weights, before = dict(instance.weights), output(instance, x)
    rows, features = _owned(instance, name, head)
    changed = weights[name].copy()
    changed[rows] = draw.values(*changed[rows].shape)
    after = output(instance.write(weights | {name: changed}), x)
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


def _head_0(instance: Instance) -> HeadProjection:
    """Return how x becomes the queries, keys and values of the first head."""
    variant, weights = instance.subject.variant, instance.weights
    counts = {"q": instance.sizes["num_heads"], "k": instance.sizes["kv_heads"], "v": instance.sizes["kv_heads"]}

    def projected(x: Array) -> tuple[Array, Array, Array]:
        q, k, v = (split_heads(linear(weights, name, x), count)[0, 0] for name, count in counts.items())
        return (rotate(q, variant), rotate(k, variant), v) if variant.positions == "rotary" else (q, k, v)

    return projected
