"""Clauses of spec/cross_attention.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check_close,
    check_differs,
    check_finite,
    check_shape,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import (
    check_all_arrive,
    check_drops_nothing,
    check_kept,
    check_moves,
    check_still,
    keys_mask,
    moved,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.nothing_shown import check_nothing_shown
from conformkit.conformance.evidence.padding_at_sizes import with_hidden_memory
from conformkit.conformance.evidence.sublayers import check_rate_used
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.multi_head_attention import multi_head_attention


def build(cross_attention: Subject, width: int = 12, heads: int = 3, **options: Any) -> Instance:
    instance = cross_attention.build(d_model=width, num_heads=heads, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads")))
    return instance


def sequences(instance: Instance, draw: Draw, batch: int, queries: int, keys: int) -> tuple[Array, Array, Array]:
    """Return query (B, Tq, D), key and value (B, Tk, D), the same array if both are one argument."""
    tq, tk = instance.subject.tokens(queries), instance.subject.tokens(keys)
    width = instance.sizes["d_model"]
    query, key, value = (draw.values(batch, tokens, width) for tokens in (tq, tk, tk))
    return query, key, value if instance.subject.offers("own-values") else key


@clause("XATTN-LEN")
def test_the_query_decides_the_length_of_the_output(cross_attention: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 1)):
        instance = build(cross_attention, width, heads).scatter(draw)
        for batch, queries, keys in ((2, 4, 7), (3, 6, 2), (1, 1, 5), (2, 5, 1), (1, 3, 3)):
            q, k, v = sequences(instance, draw, batch, queries, keys)
            check_shape("output", out := instance(q, k, v), q.shape)
            check_finite("output", out)


@clause("XATTN-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(cross_attention: Subject) -> None:
    for width, heads in ((12, 3), (8, 2)):
        check_count(build(cross_attention, width, heads))
    cross_attention.bound.require_weights()


@clause("XATTN-VALUES-MEMORY")
def test_a_value_of_zeros_hides_query_and_key(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 5, 5)
    nothing, tolerance = np.zeros_like(v), cross_attention.tolerance()
    seen, without_keys = instance(q, k, v), instance(q, np.zeros_like(k), v)
    reads = "follows" if np.abs(seen - without_keys).max(initial=0.0) > 1e-3 else "ignores"
    check_differs(f"the output for another value, which {reads} the key,", seen, instance(q, k, nothing), at_least=1e-3)
    before = instance(q, k, nothing)
    for name, other in (("query", (draw.values(*q.shape), k)), ("key", (q, draw.values(*k.shape)))):
        check_close(f"the output for another {name}, the value 0,", instance(*other, nothing), before, tolerance)


@clause("XATTN-KEYS-MEMORY")
def test_equal_rows_of_the_key_leave_no_choice(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 5, 5)
    same = np.repeat(k[:, :1], k.shape[1], axis=1)
    out = instance(q, same, v)
    check_close("the output rows, all key rows alike,", out, np.repeat(out[:, :1], out.shape[1], axis=1),
                cross_attention.tolerance())  # fmt: skip
    if k.shape[1] > 1:
        check_differs("the output for another key", instance(q, k, v), out, at_least=1e-3)


@clause("XATTN-SOURCES")
def test_equal_rows_of_the_memory_hide_the_query(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 4, 6)
    other = draw.values(*q.shape, scale=3.0)
    same_k, same_v = (np.repeat(rows[:, :1], rows.shape[1], axis=1) for rows in (k, v))
    if k.shape[1] > 1:
        check_differs("the output for another query", instance(other, k, v), instance(q, k, v), at_least=1e-3)
    got, want = instance(other, same_k, same_v), instance(q, same_k, same_v)
    check_close("the output for another query, all memory rows alike,", got, want, cross_attention.tolerance())


@clause("XATTN-QUERY-ROWS")
def test_a_query_row_moves_its_own_output_row_only(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    by = moved(instance, draw, sequences(instance, draw, 1, 5, 4), 0)
    others = by * (1 - np.eye(len(by)))
    check_still("the change of output t when the query changes at j ≠ t", others, cross_attention.tolerance())


@clause("XATTN-NO-CAUSAL")
def test_every_query_sees_the_whole_memory(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    for queries, keys in ((4, 6), (6, 4), (5, 5)):
        q, k, v = sequences(instance, draw, 1, queries, keys)
        check_moves("memory row", moved(instance, draw, (q, k, v), 1, 2))


@clause("XATTN-MEM-PERM")
def test_permuted_rows_of_the_memory_give_the_same_output(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 4, 6)
    order = draw.permutation(k.shape[1])
    tolerance = cross_attention.tolerance()
    check_close("output, memory permuted", instance(q, k[:, order], v[:, order]), instance(q, k, v), tolerance)


@clause("XATTN-BATCH-INDEP")
def test_a_sequence_gives_the_same_output_in_any_batch(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 3, 3, 5)  # as many sequences as queries and heads
    together = instance(q, k, v)
    check_differs("the output for another sequence", together[0], together[1])
    for one in range(3):
        alone = instance(*(each[one : one + 1] for each in (q, k, v)))[0]
        check_close(f"output of sequence {one} alone", alone, together[one], cross_attention.tolerance())


def hiding(instance: Instance, draw: Draw, *counts: int) -> tuple[Array, Array, Array, Array]:
    """Return sequences and which rows of the memory are real: all but some at the end, for each sequence."""
    q, k, v = sequences(instance, draw, len(counts), 3, 6)
    if k.shape[1] <= max(counts):
        raise NotApplicable.from_sizes("the declared limits allow only sequences too short to hide something")
    real = np.arange(k.shape[1])[None] < k.shape[1] - np.array(counts)[:, None]
    return q, k, v, real


@clause("XATTN-MASK-POLARITY")
def test_rows_that_the_mask_shows_have_influence(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v, real = hiding(instance, draw, 2)
    by = moved(instance, draw, (q, k, v, keys_mask(real)), 1, 2)
    check_moves("visible memory row", by[real[0]])


@clause("XATTN-PAD")
def test_hidden_rows_of_the_memory_change_nothing(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    for hidden in (2, 1):
        q, k, v, real = hiding(instance, draw, hidden)
        by = moved(instance, draw, (q, k, v, keys_mask(real)), 1, 2)[~real[0]]
        check_still("the change of the output when a hidden row changes", by, cross_attention.tolerance())


@clause("XATTN-PAD-AMOUNT")
def test_appended_padding_changes_nothing(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    for count in (1, 4):
        q, k, v, real = hiding(instance, draw, count)
        shorter = instance(q, *(rows[:, real[0]] for rows in (k, v)))
        label = f"output with {count} hidden rows appended"
        check_close(label, instance(q, k, v, keys_mask(real)), shorter, cross_attention.tolerance())


@clause("XATTN-PAD-EACH")
def test_each_sequence_has_its_own_padding(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v, real = hiding(instance, draw, 0, 3, 1)
    together = instance(q, k, v, keys_mask(real))
    for one in range(len(q)):
        alone = instance(*(each[one : one + 1] for each in (q, k, v, keys_mask(real))))[0]
        check_close(f"output of sequence {one} alone", alone, together[one], cross_attention.tolerance())


@clause("XATTN-PAD-ALL")
def test_a_memory_that_is_hidden_as_a_whole_leaves_everything_finite(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v, real = hiding(instance, draw, 0, 3)
    before = instance(q, k, v, keys_mask(real))
    real[-1] = False
    out = instance(q, k, v, keys_mask(real))
    check_close("outputs of the other sequences", out[:-1], before[:-1], cross_attention.tolerance())
    check_finite("the output of the sequence without a memory", out[-1])
    if cross_attention.offers("gradients"):
        found = instance.vjp(q, k, v, keys_mask(real), cotangent=draw.values(*out.shape), wrt=("query", "key"))
        for name, gradient in {**found.inputs, **found.parameters}.items():
            check_finite(f"the gradient of {name}", np.zeros(1) if gradient is None else gradient)


@clause("XATTN-NOTHING")
def test_a_mask_that_allows_nothing_is_not_taken_for_none(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v, some = hiding(instance, draw, 0, 3)
    some[-1] = False
    want, got = (instance(q, k, v, keys_mask(real))[-1] for real in (some, np.zeros_like(some)))
    label = "the output of a sequence, where no sequence sees any memory,"
    check_nothing_shown(label, want, got, instance(q, k, v)[-1], cross_attention.tolerance())


@clause("XATTN-ORACLE")
def test_the_output_is_that_of_the_definition(cross_attention: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 1), (8, 4)):
        instance = build(cross_attention, width, heads).randomize(draw)
        for batch, queries, keys in ((2, 4, 7), (3, 6, 2), (1, 1, 5)):
            q, k, v = sequences(instance, draw, batch, queries, keys)
            check_close("output", instance(q, k, v), instance.expected(q, k, v), cross_attention.tolerance())
            if cross_attention.offers("masks"):
                mask = keys_mask(draw.mask(batch, k.shape[1]))
                got, want = instance(q, k, v, mask), instance.expected(q, k, v, mask)
                check_close("output, with a mask,", got, want, cross_attention.tolerance())


@clause("XATTN-SAME-AS-SELF")
def test_a_sequence_that_asks_itself_gets_self_attention(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).randomize(draw)
    x = sequences(instance, draw, 2, 5, 5)[0]
    variant = cross_attention.variant.but(positions="none")  # the memory is not rotated
    heads = {name: instance.sizes[name] for name in ("num_heads", "kv_heads")}
    want = multi_head_attention(instance.weights, x, **heads, causal=False, variant=variant)
    check_close("output", instance(x, x, x), want, cross_attention.tolerance())


@clause("XATTN-GRAD-ENC")
def test_gradients_reach_everything(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 4, 6)
    check_all_arrive(instance, draw, (q, k, v))


@clause("XATTN-DROPOUT-EVAL")
def test_evaluation_drops_nothing(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(cross_attention, dropout=0.0), sequences(instance, draw, 2, 4, 6))


@clause("XATTN-DROPOUT-TRAIN")
def test_a_dropout_rate_that_is_accepted_is_used(cross_attention: Subject, draw: Draw) -> None:
    instance, plain = (build(cross_attention, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    check_rate_used(instance, plain, sequences(instance, draw, 2, 4, 6))


@clause("XATTN-INPUT-KEPT")
def test_the_arguments_stay_as_they_are(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v, real = hiding(instance, draw, 1, 0)
    check_kept(instance, (q, k, v, *((keys_mask(real),) if cross_attention.offers("masks") else ())))


@clause("XATTN-SIZES")
def test_the_output_equals_the_definition_at_every_size(cross_attention: Subject, draw: Draw) -> None:
    check_definition_at_sizes(cross_attention, draw, after="XATTN-ORACLE", padded=with_hidden_memory)


@clause("XATTN-GRAD-SIZES")
def test_gradients_are_right_at_every_size(cross_attention: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(cross_attention, draw, after="XATTN-ORACLE")
