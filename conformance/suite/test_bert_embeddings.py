"""Clauses of spec/bert_embeddings.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import check_all_arrive, check_drops_nothing, check_kept
from conformkit.conformance.evidence.encoder_texts import (
    changed,
    check_refused,
    check_rows,
    check_too_long,
    text,
    trained_segments,
)
from conformkit.conformance.evidence.sublayers import check_varies
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import first_position

_RATE = 0.2
"""A rate of dropout that is not the share that is left."""
_VISIBLE, _ALIKE = 0.1, 0.02
"""Numbers large enough to be divided by in any number format, and how far their quotients may differ."""


def build(bert_embeddings: Subject, width: int = 12, **options: Any) -> Instance:
    instance = bert_embeddings.build(d_model=width, **options)
    shown = ("vocab_size", "d_model", "max_len", "num_segments")
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in shown))
    return instance


@clause("BEMB-SHAPE")
def test_each_id_gives_a_row(bert_embeddings: Subject, draw: Draw) -> None:
    for width in (12, 7):
        instance = build(bert_embeddings, width)
        check_rows(instance, draw, instance.sizes["d_model"])


@clause("BEMB-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(bert_embeddings: Subject) -> None:
    for width in (12, 7):
        check_count(build(bert_embeddings, width))
    bert_embeddings.bound.require_weights()


@clause("BEMB-OWN-ROW")
def test_each_row_depends_on_its_own_id(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).scatter(draw)
    by = changed(instance, text(instance, draw, 1, 6), 0, instance.sizes["vocab_size"])
    check_diagonal(by, "id", bert_embeddings)


@clause("BEMB-SEGMENTS")
def test_each_row_depends_on_its_own_segment(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).scatter(draw)
    if instance.sizes["num_segments"] < 2:
        raise NotApplicable.from_sizes("its limits allow one segment only")
    by = changed(instance, text(instance, draw, 1, 6), 1, instance.sizes["num_segments"])
    check_diagonal(by, "segment", bert_embeddings)


def check_read_rows_arrive(instance: Instance, draw: Draw, ids: Array, segments: Array) -> None:
    """Check that a gradient reaches the row of each segment and position that a text has, the first ones included."""
    bound, cotangent = instance.subject.bound, draw.values(*instance(ids, segments).shape)
    if not bound.rules:
        return
    found = instance.vjp(ids, segments, cotangent=cotangent, wrt=()).parameters
    given = {name: gradient for name, gradient in found.items() if gradient is not None}
    tables = bound.to_canonical(given, instance.sizes)
    first = first_position(bound.variant, instance.sizes)
    read = {"segments": np.unique(segments), "positions": first + np.arange(ids.shape[1])}
    for name, rows in read.items():
        table = tables.get(f"{name}.weight")
        cut = [] if table is None else [int(row) for row in rows if not np.any(table[row])]
        label = f"no gradient reaches row {', '.join(map(str, cut))} of the table of {name}, which the texts have"
        check(label, not cut)


def check_diagonal(by: Array, what: str, bert_embeddings: Subject) -> None:
    """Check that entry j of what was changed moves row j alone; `by` is the result of `changed`."""
    own = np.diagonal(by)
    check_differs(f"the row of a position with another {what}", own, np.zeros_like(own), at_least=1e-4)
    for position, moved in enumerate(own):
        check_differs(f"row {position} with another {what} there", moved[None], np.zeros(1), at_least=1e-6)
    check_zero(f"the change of other rows with another {what}", by * (1 - np.eye(len(by))),
               at_most=10 * bert_embeddings.tolerance())  # fmt: skip


@clause("BEMB-SEGMENTS-DEFAULT")
def test_without_segments_they_are_zero(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).scatter(draw)
    ids, _ = text(instance, draw, 2, 5)
    want = instance(ids, np.zeros_like(ids))
    check_close("rows without segments", instance(ids), want, bert_embeddings.tolerance())


@clause("BEMB-POSITIONS")
def test_the_same_id_differs_by_position(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).scatter(draw)
    ids, _ = text(instance, draw, 1, 6)
    ids[:] = ids[0, 0]
    if ids.shape[1] < 2:
        raise NotApplicable.from_sizes("its limits allow one position only")
    rows = instance(ids, np.zeros_like(ids))[0]
    for position in range(1, len(rows)):
        check_differs(f"row {position} of a text that repeats one id", rows[position], rows[position - 1],
                      at_least=1e-4)  # fmt: skip


@clause("BEMB-MAX-LEN")
def test_the_longest_text_is_accepted(bert_embeddings: Subject, draw: Draw) -> None:
    for longest in (7, 16):
        instance = build(bert_embeddings, max_len=longest)
        limit = instance.sizes["max_len"]
        if bert_embeddings.tokens(limit) < limit:
            raise NotApplicable.from_sizes("the declared limits allow no text of max_len positions")
        check_finite(f"output for {limit} positions", instance(*text(instance, draw, 1, limit)))


@clause("BEMB-OOV")
def test_what_is_in_no_table_is_refused(bert_embeddings: Subject, draw: Draw) -> None:
    check_refused(build(bert_embeddings), draw)
    check_too_long(bert_embeddings, draw)


@clause("BEMB-NORM")
def test_rows_have_mean_0_and_variance_1(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).randomize(draw)
    plain = {"embedding_norm.weight": np.ones_like(instance.weights["embedding_norm.weight"])}
    if "embedding_norm.bias" in instance.weights:
        plain["embedding_norm.bias"] = np.zeros_like(instance.weights["embedding_norm.bias"])
    for scale in (1.0, bert_embeddings.up_to(30.0)):
        tables = {n: scale * instance.weights[n] for n in ("embedding.weight",)}
        rows = instance.write({**plain, **tables})(*text(instance, draw, 2, 6))
        tolerance = bert_embeddings.no_finer(1e-4)
        check_zero("the mean of a row", rows.mean(axis=-1), at_most=tolerance)
        variance = rows.var(axis=-1)
        check_close("the variance of a row", variance, np.ones_like(variance), tolerance)


@clause("BEMB-ORACLE")
def test_the_rows_are_those_of_the_definition(bert_embeddings: Subject, draw: Draw) -> None:
    for width, vocabulary in ((12, 11), (7, 30)):
        instance = build(bert_embeddings, width, vocab_size=vocabulary).randomize(draw)
        own = dict(instance.weights)
        fixed = bert_embeddings.half or bert_embeddings.variant.positions == "sinusoidal"
        for scale in (1.0,) if fixed else (1.0, 1e-5):
            small = {n: scale * own[n] for n in own if not n.startswith("embedding_norm")}
            instance.write(small)
            inputs = text(instance, draw, 2, 8)
            label = "output" if scale == 1.0 else f"output, tables {scale:g} times as large,"
            check_close(label, instance(*inputs), instance.expected(*inputs), bert_embeddings.tolerance())


@clause("BEMB-SIZES")
def test_the_rows_equal_the_definition_at_every_size(bert_embeddings: Subject, draw: Draw) -> None:
    check_definition_at_sizes(bert_embeddings, draw, after="BEMB-ORACLE")


@clause("BEMB-GRAD-ALL")
def test_gradients_reach_every_table(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings).scatter(draw)
    ids, segments = text(instance, draw, 2, 5)
    segments = np.arange(segments.size).reshape(segments.shape) % instance.sizes["num_segments"]  # each of them
    segments = trained_segments(instance, segments)
    check_all_arrive(instance, draw, (ids, segments))
    check_read_rows_arrive(instance, draw, ids, segments)


@clause("BEMB-DROPOUT")
def test_rows_are_dropped_in_training_alone(bert_embeddings: Subject, draw: Draw) -> None:
    instance, plain = (build(bert_embeddings, dropout=rate).scatter(draw) for rate in (0.5, 0.0))
    inputs = text(instance, draw, 2, 5)
    check_drops_nothing(instance, plain, inputs)
    check_varies(instance, plain, inputs)
    same = tuple(np.repeat(each[:1], 2, axis=0) for each in inputs)
    one, other = instance(*same, mode="train", seed=1)
    check_differs("rows in training mode of two texts that are the same, dropout 0.5,", one, other)
    check_kept_share(build(bert_embeddings, dropout=_RATE).scatter(draw), text(instance, draw, 16, 8))


def check_kept_share(instance: Instance, inputs: tuple[Array, ...]) -> None:
    """Check that the rate is the share that is dropped, and that the rest is divided by 1 - p if dropout comes last."""
    whole, trained = (instance.call(*inputs, mode=mode, seed=1).out for mode in ("eval", "train"))
    left = (trained != 0) & (np.abs(whole) > _VISIBLE)
    share = float((trained == 0).mean())
    check(f"{share:.0%} of the numbers are 0 in training mode, dropout {_RATE:g}", share < 0.5)
    ratio = trained[left] / whole[left]
    if np.ptp(ratio) < _ALIKE:  # a norm behind the dropout scales each row by itself
        got, want = ratio.mean(), 1.0 / (1.0 - _RATE)
        label = f"in training mode, dropout {_RATE:g}, what is left is {got:.3g} times as large, expected {want:.3g}"
        check(label, abs(got - want) < _ALIKE)


@clause("BEMB-DROPOUT-LAST")
def test_what_is_dropped_is_the_normalized_sum(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings, dropout=0.5).scatter(draw)
    inputs = text(instance, draw, 2, 5)
    whole, trained = instance.call(*inputs).out, instance.call(*inputs, mode="train", seed=1).out
    kept = np.where(trained == 0, 0.0, 2 * whole)
    check_close("output in training, where it is not 0,", trained, kept, bert_embeddings.tolerance(4))


@clause("BEMB-KEPT")
def test_the_arguments_stay_as_they_are(bert_embeddings: Subject, draw: Draw) -> None:
    instance = build(bert_embeddings)
    check_kept(instance, text(instance, draw, 2, 5))
