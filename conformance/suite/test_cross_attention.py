"""Clauses of spec/cross_attention.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check_close, check_differs, check_finite, check_shape, under
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.dependence import check_moves, check_still, keys_mask, moved
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject

Array = npt.NDArray[Any]


def build(cross_attention: Subject, width: int = 12, heads: int = 3, **options: Any) -> Instance:
    instance = cross_attention.build(d_model=width, num_heads=heads, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads")))
    return instance


def sequences(instance: Instance, draw: Draw, batch: int, queries: int, keys: int) -> tuple[Array, Array, Array]:
    """Return query (B, Tq, D), key and value (B, Tk, D)."""
    tq, tk = instance.subject.tokens(queries), instance.subject.tokens(keys)
    width = instance.sizes["d_model"]
    return draw.values(batch, tq, width), draw.values(batch, tk, width), draw.values(batch, tk, width)


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


@clause("XATTN-SOURCES")
def test_equal_rows_of_the_memory_hide_the_query(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 2, 4, 6)
    other = draw.values(*q.shape, scale=3.0)
    same_k, same_v = (np.repeat(rows[:, :1], rows.shape[1], axis=1) for rows in (k, v))
    tolerance = cross_attention.tolerance()
    check_differs("the output for another query", instance(other, k, v), instance(q, k, v), at_least=1e-3)
    before = instance(q, same_k, same_v)
    check_close(
        "the output for another query, all memory rows alike,", instance(other, same_k, same_v), before, tolerance
    )
    check_close("the output for other keys, all values alike,", instance(q, k, same_v), before, tolerance)
    check_close("the output for other values, their rows turned round,", instance(q, same_k, v),
                instance(q, same_k, v[:, ::-1].copy()), tolerance)  # fmt: skip


@clause("XATTN-NO-CAUSAL")
def test_every_query_sees_the_whole_memory(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    for queries, keys in ((4, 6), (6, 4)):
        q, k, v = sequences(instance, draw, 1, queries, keys)
        check_moves("row of the memory", moved(instance, draw, (q, k, v), 1, 2))


@clause("XATTN-PAD")
def test_hidden_rows_of_the_memory_change_nothing(cross_attention: Subject, draw: Draw) -> None:
    instance = build(cross_attention).scatter(draw)
    q, k, v = sequences(instance, draw, 1, 3, 6)
    real = np.arange(k.shape[1])[None] < 4
    if real.all():
        real[:, -1] = False
    by = moved(instance, draw, (q, k, v, keys_mask(real)), 1, 2)
    check_still("the change of the output when a hidden row changes", by[~real[0]], cross_attention.tolerance())
    check_moves("visible row of the memory", by[real[0]])


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
