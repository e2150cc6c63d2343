"""Clauses of spec/latent_attention.md."""

from __future__ import annotations

from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, check_differs, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.evidence.scores import divisor, telling_positions
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.latent_attention import latent_heads

LONG = 3.0
"""Latents so much longer than drawn ones show little of ε."""
EPS = 1e-3
LARGER = 8.0


@clause("MLA-NORM")
def test_a_longer_latent_gives_the_same_keys_and_values(multi_head: Subject, draw: Draw) -> None:
    _check_length(multi_head, draw, "kv_latent")


@clause("MLA-VALUES")
def test_one_position_gives_the_sum_of_its_values(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 1]):
        instance = multi_head.build(d_model=12, num_heads=heads).randomize(draw)
        own = instance.weights
        gammas = {n: draw.uniform(*a.shape, low=0.5, high=2.0) for n, a in own.items() if n == "kv_latent_norm.weight"}
        instance.write(own | zeros(instance, "out.") | gammas | {"out.weight": np.ones_like(own["out.weight"])})
        x = drawn(instance, draw, 3, 1)[:, :1]
        check_close("output of one position", output(instance, x), instance.expected(x), multi_head.tolerance())
        instance.write({"kv_latent.weight": 1e-3 * own["kv_latent.weight"]})
        under("a short latent, which shows ε")
        check_close("output of one position", output(instance, x), instance.expected(x), multi_head.tolerance(4))


@clause("MLA-QUERY-NORM")
def test_a_longer_latent_gives_the_same_queries(multi_head: Subject, draw: Draw) -> None:
    _check_length(multi_head, draw, "q_latent")
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    x, own, gamma = drawn(instance, draw, 2, 5), instance.weights, "q_latent_norm.weight"
    before = output(instance, x)
    if gamma in own:
        twice = 2.0 * own[gamma] + (1.0 - multi_head.variant.plain_gamma)
        larger = {name: 2.0 * own[name] for name in ("q.weight", "q_rotary.weight") if name in own}
        shift = {name: 2.0 * own[name] for name in own if name == "q_latent_norm.bias"}
        want = output(instance.write(own | larger), x)
        under("twice γ of the norm, compared with twice W_q")
        check_close("output", output(instance.write(own | shift | {gamma: twice}), x), want, multi_head.tolerance())
    row = draw.values(1, own["q_latent.weight"].shape[1])
    moved = output(instance.write(own | {"q_latent.weight": own["q_latent.weight"] + row}), x)
    under("the same number added to all features of the latent")
    if multi_head.variant.norm == "layernorm":
        check_close("output", moved, before, multi_head.no_finer(EPS))
    else:
        check_differs("output", moved, before, at_least=1e-4)


@clause("MLA-ROTARY-PLAIN")
def test_a_rotated_key_counts_twice_as_its_query_does(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    x, own = drawn(instance, draw, 2, 5), instance.weights
    keys, queries = (
        output(instance.write(own | {name: 2.0 * own[name]}), x) for name in ("k_rotary.weight", "q_rotary.weight")
    )
    check_close("output for 2 k_rotary.weight, compared with 2 q_rotary.weight,", keys, queries, multi_head.tolerance())


@clause("MLA-CONTENT")
def test_permuted_tokens_leave_the_unrotated_part_as_it_is(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [2, 1]):
        instance = multi_head.build(d_model=16, num_heads=heads).randomize(draw)
        instance.write(zeros(instance, "q_rotary."))
        length = multi_head.tokens(8)
        seen = min(multi_head.variant.window or length, length)  # by the last query
        if seen < 3:
            raise NotApplicable.from_sizes("the last query sees fewer than three keys")
        x = draw.values(2, length, instance.sizes["d_model"])
        order = np.r_[: length - seen, np.roll(np.arange(length - seen, length - 1), 1), length - 1]
        before, after = (instance(rows)[:, -1] for rows in (x, x[:, order]))
        check_close("the last output, earlier tokens permuted,", after, before, multi_head.tolerance())


@clause("MLA-SHARED")
def test_heads_that_ask_the_same_get_the_same(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    heads, given = (instance.sizes[name] for name in ("num_heads", "value_width"))
    own = instance.weights
    alike = {
        name: np.concatenate([own[name][: len(own[name]) // heads]] * heads) for name in ("q_rotary.weight", "v.weight")
    }
    eye = np.eye(*own["out.weight"].shape)
    instance.write(own | zeros(instance, "q.") | zeros(instance, "out.") | alike | {"out.weight": eye})
    out = output(instance, drawn(instance, draw, 2, 5))
    for head in range(1, heads):
        shown = out[..., head * given : (head + 1) * given]  # some are cut off where values are wide
        check_close(f"features of head {head}", shown, out[..., : shown.shape[-1]], multi_head.tolerance())


@clause("MLA-SCALE")
def test_scores_are_divided_by_the_root_of_both_widths(multi_head: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (12, 2), (20, 2), (16, 1)):
        instance = multi_head.build(d_model=width, num_heads=heads).randomize(draw)
        under(f"d_model = {instance.sizes['d_model']}, num_heads = {instance.sizes['num_heads']}")
        eye = np.eye(*instance.weights["out.weight"].shape)
        instance.write(zeros(instance, "out.") | zeros(instance, "q_rotary.") | {"out.weight": eye})
        x, apart, values = telling_positions(draw, instance.sizes["d_model"], partial(_head_0, instance))
        own = min(instance.sizes["value_width"], instance.sizes["d_model"])
        got = divisor(output(instance, x)[0, 1, :own], values[:, :own], apart)
        allowed = multi_head.no_finer(EPS)  # the norm of queries may have another ε
        check_close("the divisor of the scores", got, np.sqrt(_whole_width(instance)), allowed)


@clause("MLA-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, causal in each_of("heads, causal", [(3, True), (2, False), (1, True)]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
        own = instance.weights
        gammas = {n: draw.uniform(*a.shape, low=0.5, high=2.0) for n, a in own.items() if n.endswith("_norm.weight")}
        instance.write(own | gammas)
        x = drawn(instance, draw, 2, 6)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())
        instance.write({n: 1e-3 * a for n, a in own.items() if n.endswith("_latent.weight")})
        under("short latents, which show ε")
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance(4))


def _check_length(multi_head: Subject, draw: Draw, name: str) -> None:
    """Check that multiplying the map to a latent by a factor changes nothing but what ε explains."""
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    x, own = drawn(instance, draw, 2, 5), instance.weights
    long = {f"{name}.weight": LONG * own[f"{name}.weight"]}
    before = output(instance.write(own | long), x)
    under(f"{name}.weight times {LARGER:g}")
    after = output(instance.write({n: LARGER * a for n, a in long.items()}), x)
    check_close("output", after, before, multi_head.no_finer(EPS))
    other = draw.values(*own[f"{name}.weight"].shape)
    under(f"another {name}.weight")
    check_differs("output", output(instance.write({f"{name}.weight": other}), x), before, at_least=1e-4)


def _head_0(instance: Instance, x: Array) -> tuple[Array, Array, Array]:
    """Return queries, keys and values of the first head."""
    q, k, v = latent_heads(instance.weights, x, instance.sizes["num_heads"], instance.subject.variant)
    return q[0, 0], k[0, 0], v[0, 0]


def _whole_width(instance: Instance) -> int:
    """Return the width of a head's queries and keys, what rotates included."""
    turned = instance.sizes["rotary_width"] if instance.subject.variant.positions == "rotary" else 0
    return int(instance.sizes["head_width"] + turned)
