"""Clauses of spec/token_embedding.md."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_dtype,
    check_equal,
    check_finite,
    check_refuses,
    check_shape,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import Built, multiplications, nearest, with_last
from conformkit.conformance.evidence.dependence import check_kept
from conformkit.conformance.evidence.half_precision import check_halves
from conformkit.conformance.evidence.tables import TABLE, check_row_gradient, table_gradient
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array


@clause("TOKEMB-SHAPE")
def test_each_id_becomes_a_vector_of_the_model_s_width(token_embedding: Subject, draw: Draw) -> None:
    for vocabulary, width in ((11, 12), (7, 8)):
        instance = build(token_embedding, vocabulary, width)
        for batch, tokens in ((2, 5), (1, 1), (3, 4)):
            ids = draw.ids(instance.sizes["vocab_size"], batch, token_embedding.tokens(tokens))
            check_shape("output", y := instance(ids), (*ids.shape, instance.sizes["d_model"]))
            check_finite("output", y)


@clause("TOKEMB-PARAM-COUNT")
def test_each_id_has_one_row_and_there_is_nothing_else(token_embedding: Subject) -> None:
    for vocabulary, width in ((11, 12), (7, 8)):
        check_count(build(token_embedding, vocabulary, width))
    token_embedding.bound.require_weights()


@clause("TOKEMB-DTYPE")
def test_vectors_have_the_number_format_of_the_table(token_embedding: Subject, draw: Draw) -> None:
    formats = [name for name in ("float32", "float64") if token_embedding.offers(name)]
    if not formats:
        raise NotApplicable.from_formats(f"it is judged in {token_embedding.precision} only")
    for name in formats:
        instance = token_embedding.build(dtype=name)
        check_dtype("the output", instance.call(text(instance, draw, 2, 5)).dtype, name)


@clause("TOKEMB-PLACE")
def test_an_id_gives_the_same_vector_wherever_it_stands(token_embedding: Subject, draw: Draw) -> None:
    instance = build(token_embedding).scatter(draw)
    met: dict[int, list[Array]] = {}
    for batch, tokens in ((2, 6), (3, 5), (1, 1), (1, 7), (4, 1)):
        ids = draw.ids(instance.sizes["vocab_size"], batch, token_embedding.tokens(tokens))
        ids[0, -1] = 2
        for token, vector in zip(ids.ravel(), instance(ids).reshape(ids.size, -1), strict=True):
            met.setdefault(int(token), []).append(vector)
    for token in each_of("token", sorted(met)):
        first, *others = met[token]
        want = np.broadcast_to(first, (len(others), *first.shape))
        got = np.reshape(others, want.shape)
        check_close(f"the vectors of id {token}, met again,", got, want, token_embedding.tolerance())


@clause("TOKEMB-LENGTH")
def test_a_row_is_read_at_the_length_that_it_has(token_embedding: Subject, draw: Draw) -> None:
    instance = build(token_embedding).randomize(draw)
    table, ids = instance.weights[TABLE], every_id(instance, draw)
    nothing = written(instance, np.zeros_like(table))(ids)
    once = written(instance, table)(ids) - nothing
    for times in each_of("times", [0.05, token_embedding.up_to(300.0)]):
        raw = written(instance, times * table).read_raw()
        got = instance(ids) - nothing
        check_close(f"output, rows {times:g} times as long,", got, times * once, token_embedding.tolerance())
        after = instance.read_raw()
        for name in (p["name"] for p in instance.trainable):
            check_equal(f"{name} after the call", after[name], raw[name])


@clause("TOKEMB-SCALE")
def test_rows_are_multiplied_by_the_declared_factor(token_embedding: Subject, draw: Draw) -> None:
    for vocabulary, width in ((11, 12), (7, 20), (30, 5)):
        instance = build(token_embedding, vocabulary, width).randomize(draw)
        ones, root = np.ones_like(instance.weights[TABLE]), math.sqrt(instance.sizes["d_model"])
        under(f"d_model = {instance.sizes['d_model']}, whose root is {root:.4g}")
        ids = text(instance, draw, 2, 5)
        rise = instance.write({TABLE: ones})(ids) - instance.write({TABLE: 0 * ones})(ids)
        want = root if token_embedding.variant.embedding_scale else 1.0
        factor = np.array([np.median(rise)])
        check_close("the factor of the rows", factor, np.array([want]), token_embedding.tolerance())


@clause("TOKEMB-LOOKUP")
def test_each_id_reads_its_own_row(token_embedding: Subject, draw: Draw) -> None:
    for pad in each_pad(token_embedding):
        instance = build(token_embedding, pad=pad).randomize(draw)
        written(instance, instance.weights[TABLE])
        ids = every_id(instance, draw)
        check_close("output", instance(ids), instance.expected(ids), token_embedding.tolerance())


@clause("TOKEMB-PAD-ZERO")
def test_the_padding_id_gives_zeros(token_embedding: Subject, draw: Draw) -> None:
    for pad in each_pad(token_embedding):
        instance = build(token_embedding, pad=pad)
        ids = text(instance, draw, 2, 5)
        ids[:, -1] = ids[0, 0] = instance.sizes["pad_id"]
        padding = instance(ids)[ids == instance.sizes["pad_id"]]
        check_zero("the output at padding, as constructed,", padding, own_draws=True)


@clause("TOKEMB-PAD-ONLY")
def test_no_other_row_starts_at_zero(token_embedding: Subject) -> None:
    for pad in each_pad(token_embedding):
        instance = build(token_embedding, pad=pad)
        words = real(instance)
        still = words[~instance(rows_of(instance, words))[:, 0].any(axis=-1)]
        check(f"the vectors of ids {', '.join(map(str, still))} are 0 as constructed", not still.size, own_draws=True)


@clause("TOKEMB-PAD-GRAD")
def test_the_row_of_the_padding_id_does_not_learn(token_embedding: Subject, draw: Draw) -> None:
    for pad in each_pad(token_embedding):
        instance = build(token_embedding, pad=pad)
        ids = text(instance, draw, 2, 5)
        ids[:, -1] = ids[0, 0] = instance.sizes["pad_id"]
        gradient = gradient_of(instance, draw, ids)
        check_zero("the gradient of the padding id's row", gradient[instance.sizes["pad_id"]])


@clause("TOKEMB-GRAD-ROWS")
def test_the_rows_of_the_ids_that_occur_learn(token_embedding: Subject, draw: Draw) -> None:
    for pad in each_pad(token_embedding):
        instance = build(token_embedding, pad=pad)
        words = real(instance)
        read = np.unique([words[0], words[-1], *words[draw.permutation(len(words))[: len(words) // 2]]])
        gradient = gradient_of(instance, draw, rows_of(instance, read))
        still = [int(token) for token in read if not gradient[token].any()]
        own_padding = 0 if token_embedding.offers("pad-id") else 1
        check(f"the rows of ids {still}, which occur, get a gradient of 0", len(still) <= own_padding)
        unread = np.setdiff1d(np.arange(len(gradient)), read)
        check_zero("the gradient of the rows of ids that don't occur", gradient[unread])


@clause("TOKEMB-GRAD-SUM")
def test_an_id_that_occurs_n_times_gets_the_sum_of_n_gradients(token_embedding: Subject, draw: Draw) -> None:
    instance = build(token_embedding).randomize(draw)
    written(instance, instance.weights[TABLE])
    words = real(instance)
    alone = gradient_of(instance, draw, rows_of(instance, words))
    learning = words[alone[words].any(axis=-1)]  # all except a padding id
    ids = text(instance, draw, 3, 6)
    ids[:, ::2] = token = int(learning[draw.integer(0, len(learning) - 1)])
    under(f"id {token}, which occurs {int((ids == token).sum())} times")
    check_row_gradient(instance, ids, token, draw.values(*ids.shape, instance.sizes["d_model"]), draw)


@clause("TOKEMB-OOV")
def test_an_id_beyond_the_vocabulary_is_refused(token_embedding: Subject, draw: Draw) -> None:
    for vocabulary in (11, 7):
        instance = build(token_embedding, vocabulary)
        known = instance.sizes["vocab_size"]
        check_all_refused(instance, draw, known, known + 5, 3 * known)


@clause("TOKEMB-NEGATIVE")
def test_a_negative_id_is_refused(token_embedding: Subject, draw: Draw) -> None:
    instance = build(token_embedding)
    check_all_refused(instance, draw, -1, -instance.sizes["vocab_size"])


@clause("TOKEMB-PURE")
def test_the_ids_stay_as_they_are(token_embedding: Subject, draw: Draw) -> None:
    instance = build(token_embedding)
    check_kept(instance, (every_id(instance, draw),))


@clause("TOKEMB-HALF")
def test_the_factor_is_not_rounded_in_half_precision(token_embedding: Subject, draw: Draw) -> None:
    under("d_model = 12, whose root is far from a number of bfloat16")
    if not check_halves(token_embedding.as_asked, draw, d_model=12):
        raise NotApplicable.from_formats("no half precision is accepted")


@clause("TOKEMB-SIZES")
def test_each_id_reads_its_own_row_at_every_size(token_embedding: Subject, draw: Draw) -> None:
    built = Built(token_embedding, draw, pad_id=0 if token_embedding.offers("pad-id") else None)

    def check(sizes: Case) -> None:
        instance, own = built(sizes), draw.at(sizes)
        ids = with_last(text(instance, own, sizes["batch"], sizes["tokens"]), sizes["vocab_size"], own)
        check_close("output", instance(ids), instance.expected(ids), token_embedding.tolerance())

    check_at_sizes(
        draw, check, multiplications, lambda sizes: nearest(token_embedding, sizes), after="TOKEMB-LOOKUP",
        renew=built.renew,
    )  # fmt: skip


# -- instances, tables and texts ---------------------------------------------------------------------------------------


def build(token_embedding: Subject, vocabulary: int = 11, width: int = 12, pad: int = 4) -> Instance:
    """Construct, with a padding id if one is taken: the default is not judged."""
    wanted: dict[str, Any] = {"vocab_size": vocabulary, "d_model": width}
    known = token_embedding.sizes(**wanted)["vocab_size"]
    instance = token_embedding.build(**wanted, pad_id=pad % known if token_embedding.offers("pad-id") else None)
    under(", ".join(f"{name} = {value}" for name, value in instance.sizes.items() if value is not None))
    return instance


def each_pad(token_embedding: Subject) -> tuple[int, ...]:
    """Return padding ids from the middle, the beginning and the end of the vocabulary; one, where none is taken."""
    return (4, 0, -1) if token_embedding.offers("pad-id") else (4,)


def real(instance: Instance) -> Array:
    """Return the ids other than padding."""
    known, pad = np.arange(instance.sizes["vocab_size"]), instance.sizes["pad_id"]
    found = known if pad is None else known[known != pad]
    if len(found) < 2:
        raise NotApplicable.from_sizes("its limits allow no vocabulary of two words and padding")
    return found


def rows_of(instance: Instance, words: Array) -> Array:
    """Return ids (B, T) in which each row repeats one id."""
    return np.repeat(words[:, None], instance.subject.tokens(1), axis=1)


def text(instance: Instance, draw: Draw, batch: int, tokens: int) -> Array:
    """Return ids (B, T) without padding."""
    words = real(instance)
    return words[draw.ids(len(words), batch, instance.subject.tokens(tokens))]


def every_id(instance: Instance, draw: Draw) -> Array:
    """Return ids (B, T) that contain the whole vocabulary."""
    known, tokens = instance.sizes["vocab_size"], instance.subject.tokens(6)
    return np.resize(draw.permutation(known), (-(-known // tokens), tokens))


def written(instance: Instance, table: Array) -> Instance:
    """Write a table, in which the row of the padding id is 0."""
    table, pad = table.copy(), instance.sizes["pad_id"]
    if pad is not None:
        table[pad] = 0.0
    return instance.write({TABLE: table})


def gradient_of(instance: Instance, draw: Draw, ids: Array) -> Array:
    return table_gradient(instance, ids, draw.values(*ids.shape, instance.sizes["d_model"]))


def check_all_refused(instance: Instance, draw: Draw, *outside: int) -> None:
    for wrong in outside:
        for place in (0, -1):
            ids = text(instance, draw, 2, 5)
            ids[-1, place] = wrong
            check_refuses(f"id {wrong} in a vocabulary of {instance.sizes['vocab_size']}", partial(instance, ids))
