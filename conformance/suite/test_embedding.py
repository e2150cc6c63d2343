"""Clauses of spec/embedding.md."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.evidence.averages import drops_at_own_rate
from conformkit.conformance.evidence.for_each_component import depth
from conformkit.conformance.evidence.logits import centered
from conformkit.conformance.evidence.tables import TABLE, check_row_gradient, table_gradient
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import first_position, positional_encoding

HEAD = "head.weight"


# -- the table ---------------------------------------------------------------------------------------------------------


@clause("EMB-PARAM-COUNT")
def test_each_id_has_one_row_in_the_table_and_one_in_the_head(model: Subject) -> None:
    _check_numbers_per_id(model, matrices=2)


@clause("EMB-SAME-TOKEN")
def test_an_id_means_the_same_in_every_batch(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11, num_layers=1).scatter(draw)
    count, length = _rows(model, 5), _length(instance, 1)
    batches = draw.ids(instance.sizes["vocab_size"], 4, count)
    batches[1:, -1] = batches[0, 0]
    logits = np.concatenate([instance(np.repeat(batch[:, None], length, axis=1)) for batch in batches])
    for token in each_of("token", np.unique(batches)):
        met = logits[batches.ravel() == token]
        check_close(
            f"the logits of id {token}, at its second occurrence",
            met,
            np.broadcast_to(met[0], met.shape),
            _tolerance(instance),
        )


@clause("EMB-LOOKUP")
def test_each_id_reads_its_own_row_of_the_table(model: Subject, draw: Draw) -> None:
    for wanted in each_of("wanted", [{"vocab_size": 11, "num_layers": 1}, {"vocab_size": 23, "num_layers": 1}]):
        instance = model.build(**wanted).randomize(draw)
        instance.write(_no_bias(instance))
        ids, row_of = _every_id(instance, draw), draw.permutation(instance.sizes["vocab_size"])
        before = instance(row_of[ids])
        after = instance.write({TABLE: instance.weights[TABLE][row_of]})(ids)
        before = before[..., row_of] if model.variant.tied else before  # the head's rows moved too
        check_close("the logits of ids whose rows were permuted", after, before, _tolerance(instance))


@clause("EMB-ANY-LENGTH")
def test_rows_of_the_table_are_read_at_the_length_that_they_have(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=13, num_layers=1, dropout=0.0).randomize(draw)
    rows = instance.weights[TABLE]
    lengths = draw.uniform(len(rows), 1, low=0.05, high=2.0) * np.resize([1.0, 12.0, 150.0], (len(rows), 1))
    _silence(instance, {TABLE: rows / np.linalg.norm(rows, axis=-1, keepdims=True) * lengths})
    ids, written = _every_id(instance, draw), instance.read_raw()
    for mode in each_of("mode", ["eval", "train"] if model.offers("modes") else ["eval"]):
        got = instance.call(ids, mode=mode, seed=1).out
        if mode == "eval" or not drops_at_own_rate(instance, ids):
            check_close("logits", got, instance.expected(ids), _tolerance(instance))
    left = instance.read_raw()
    for name in (p["name"] for p in instance.trainable):
        check_equal(f"{name} after the calls", left[name], written[name])


@clause("EMB-SCALE-BEFORE-PE")
def test_positions_are_added_after_the_scale(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, d_model=12).randomize(draw)
    ids = _every_id(instance, draw)
    logits, root = instance(ids), np.sqrt(instance.sizes["d_model"])
    own = np.abs(logits - _with_positions_times(instance, ids, 1.0)).max()
    factors = {"√d_model": root, "1/√d_model": 1 / root, "d_model": root**2, "2": 2.0, "-1": -1.0}
    for name, scale in ((name, scale) for name, scale in factors.items() if scale != 1.0):
        other = np.abs(logits - _with_positions_times(instance, ids, scale)).max()
        label = f"the logits are those of positions times {name} (off by {other:.2g}), expected once (off by {own:.2g})"
        check(label, bool(other > (0.5 if model.half else 1e-3) * own))


# -- its gradient ------------------------------------------------------------------------------------------------------


@clause("EMB-GRAD-ROWS")
def test_the_rows_of_the_ids_that_occur_learn(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=13, num_layers=1).randomize(draw)
    vocab_size = instance.sizes["vocab_size"]
    others = 1 + draw.permutation(max(vocab_size - 2, 0))
    if len(others) < 4:
        raise NotApplicable.from_sizes("its limits allow no vocabulary of more than five ids")
    occurring, scored = np.array([0, vocab_size - 1, *others[:2]]), others[2:4]
    ids = np.resize(occurring, (_rows(model, 2), _length(instance, 5)))
    cotangent = np.zeros((*ids.shape, vocab_size))  # a head's gradient also reaches rows of ids that don't occur
    cotangent[..., scored] = centered(model, draw.values(*ids.shape, len(scored)))
    table = table_gradient(instance, ids, cotangent)
    learning = np.unique(ids)
    for token in learning:
        check(f"the embedding of id {token}, which occurs, gets a gradient of 0", bool(table[token].any()))
    silent = np.setdiff1d(np.arange(vocab_size), np.union1d(learning, scored) if model.variant.tied else learning)
    slack = 1e-9 * float(np.abs(table).max())
    check_zero("the gradient of the embeddings of ids that don't occur", table[silent], at_most=slack)


@clause("EMB-GRAD-ACCUM")
def test_an_id_that_occurs_n_times_gets_the_sum_of_n_gradients(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=12, num_layers=1).randomize(draw)
    vocab_size = int(instance.sizes["vocab_size"])
    own = draw.permutation(vocab_size)[: max(2, vocab_size // 2)]  # ids with one row: a text may use any of them
    if vocab_size <= len(own):
        raise NotApplicable.from_sizes("its limits allow a vocabulary of two ids only")
    apart = np.setdiff1d(np.arange(vocab_size), own)[
        draw.ids(vocab_size - len(own), _rows(model, 3), _length(instance, 6))
    ]
    apart[:, ::2] = np.resize(own, apart[:, ::2].shape)
    instance.write({TABLE: _alike(instance.weights[TABLE], own)})
    repeated = np.where(np.isin(apart, own), own[0], apart)
    cotangent = draw.values(*apart.shape, vocab_size)
    under(f"id {own[0]}, which occurs {int((repeated == own[0]).sum())} times")
    got, want = (table_gradient(instance, ids, cotangent)[own].sum(axis=0) for ids in (repeated, apart))
    check_close(
        f"the gradient of the embedding of id {own[0]}, next to the sum over different ids with equal embeddings",
        got, want, 4 * _tolerance(instance), scale=float(np.abs(want).max()),
    )  # fmt: skip


# -- untied ------------------------------------------------------------------------------------------------------------


@clause("UNTIED-INDEP")
def test_the_rows_of_the_head_are_its_own(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11, num_layers=1).randomize(draw)
    token, ids = _text_without(instance, draw)
    logits, changed = instance(ids), _redrawn(instance, TABLE, token, draw)
    check_close(f"the logits when only the embedding of id {token} changed", changed(ids), logits, _tolerance(instance))
    _check_one_column(f"the head's row {token}", logits, _redrawn(instance, HEAD, token, draw)(ids), token, instance)


# -- tied --------------------------------------------------------------------------------------------------------------


@clause("TIE-PARAM-COUNT")
def test_the_shared_matrix_is_held_once(model: Subject) -> None:
    _check_numbers_per_id(model, matrices=1)


@clause("TIE-SHARED")
def test_whoever_writes_the_embedding_writes_the_head(model: Subject, draw: Draw) -> None:
    _check_tied(model.build(vocab_size=11, num_layers=1).randomize(draw), draw)


@clause("TIE-LOGITS")
def test_tied_logits_are_dot_products_with_the_rows_of_the_table(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, d_model=12).randomize(draw)
    _silence(instance, _no_bias(instance))
    ids = _every_id(instance, draw)
    got, want = instance(ids), instance.expected(ids)
    times = float((got * want).sum() / (want**2).sum())
    multiple = float(np.abs(got - times * want).max()) <= model.no_finer(1e-4) * float(np.abs(got).max())
    root = np.sqrt(instance.sizes["d_model"])
    once = not multiple or abs(times - 1.0) < model.no_finer(1e-3)
    product = "H Eᵀ / √d_model" if model.variant.tied_scale else "H Eᵀ"
    check(f"the logits are {times:.4g} times {product}, expected once (√d_model is {root:.4g})", once)


@clause("TIE-GRAD-SUM")
def test_the_shared_matrix_gets_the_gradients_of_both_uses(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=7, num_layers=1).randomize(draw)
    absent, ids = _text_without(instance, draw)
    token = int(ids[0, 0])
    full = draw.values(*ids.shape, instance.sizes["vocab_size"])
    unscored = full * (np.arange(instance.sizes["vocab_size"]) != token)
    uses = {"is only read": (token, unscored), "is only scored": (absent, full), "is both": (token, full)}
    for use, (row, cotangent) in uses.items():
        under(f"an id that {use}")
        check_row_gradient(instance, ids, row, cotangent, draw)


@clause("TIE-STAYS")
def test_the_matrix_stays_shared_when_the_number_format_changes(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11, num_layers=1).randomize(draw)
    if model.half and not model.offers("float32"):
        raise NotApplicable.from_formats(f"it declares no format wider than {model.precision}")
    for dtype in each_of("dtype", ["float32", model.precision if model.half else "float64"]):
        model.link.request({"op": "cast", "handle": instance.handle, "dtype": dtype}, {})
        instance.dtype = dtype
        _check_same_count(instance)
        _check_tied(instance.write({}), draw)  # drawn again, not the values that the cast rounded


@clause("TIE-COPY")
def test_a_deep_copy_is_tied_to_itself(model: Subject, draw: Draw) -> None:
    copy = model.build(vocab_size=11, num_layers=1).randomize(draw).copy()
    _check_same_count(copy)
    _check_tied(copy, draw)


# -- texts and weights -------------------------------------------------------------------------------------------------


def _rows(model: Subject, wanted: int) -> int:
    """Return how many sequences may be passed at once, near the wanted number."""
    return nearest_allowed("batch", wanted, model.bound.limits)


def _length(instance: Instance, wanted: int) -> int:
    return min(instance.subject.tokens(wanted), int(instance.sizes["block_size"]))


def _tolerance(instance: Instance) -> float:
    """Return the relative error allowed to its logits, for the format that it is in now."""
    exact = instance.subject.bound.dtype == instance.dtype
    return instance.subject.tolerance(depth(instance)) if exact else 1e-5 * depth(instance)


def _every_id(instance: Instance, draw: Draw) -> Array:
    """Return texts (B, T) in which every id of the vocabulary occurs."""
    vocab_size, length = instance.sizes["vocab_size"], _length(instance, 6)
    return np.resize(draw.permutation(vocab_size), (_rows(instance.subject, -(-vocab_size // length)), length))


def _text_without(instance: Instance, draw: Draw) -> tuple[int, Array]:
    """Return an id and texts (B, T) in which it does not occur."""
    vocab_size = instance.sizes["vocab_size"]
    if vocab_size < 2:
        raise NotApplicable.from_sizes("its limits allow a vocabulary of one id only")
    token = draw.integer(0, vocab_size - 1)
    ids = draw.ids(vocab_size - 1, _rows(instance.subject, 2), _length(instance, 5))
    return token, ids + (ids >= token)


def _with_positions_times(instance: Instance, ids: Array, scale: float) -> Array:
    """Return the definition's result with positions multiplied by a number before they are added."""
    variant = instance.subject.variant
    nothing = np.zeros((1, instance.sizes["block_size"], instance.sizes["d_model"]))
    first = first_position(variant, instance.sizes)
    table = scale * positional_encoding(instance.weights, nothing, variant=variant, first=first)[0]
    weights = {**instance.weights, "positions.weight": table}
    component = instance.subject.bound.component
    return component.forward(weights, {"ids": ids}, instance.sizes, variant.but(positions="learned", position_offset=0))


def _alike(table: Array, ids: Array) -> Array:
    """Return a table in which the rows of these ids are equal."""
    table = table.copy()
    table[ids] = table[ids[0]]
    return table


def _silence(instance: Instance, weights: Mapping[str, Array]) -> None:
    """Write these weights, and zeros so that every block adds nothing to its input."""
    last = (".v.weight", ".v.bias", ".out.bias", ".down.weight", ".down.bias")
    silent = {
        n: np.zeros(p.shape) for n, p in instance.canonical.items() if n.startswith("blocks.") and n.endswith(last)
    }
    instance.write({**silent, **weights})


def _no_bias(instance: Instance) -> dict[str, Array]:
    """Return weights with which logits are plain products."""
    return {name: np.zeros(p.shape) for name, p in instance.canonical.items() if name == "head.bias"}


def _redrawn(instance: Instance, name: str, token: int, draw: Draw) -> Instance:
    """Write another row of an id."""
    matrix = instance.weights[name].copy()
    matrix[token] = draw.values(matrix.shape[1])
    return instance.write({name: matrix})


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_numbers_per_id(model: Subject, *, matrices: int) -> None:
    """Check how many trainable numbers an id of the vocabulary has, from models of different vocabularies."""
    small, large = (model.build(vocab_size=size, num_layers=1) for size in (7, 19))
    further = large.sizes["vocab_size"] - small.sizes["vocab_size"]
    if not further:
        raise NotApplicable.from_sizes("its limits allow one vocabulary size only")
    want = matrices * small.sizes["d_model"] + model.variant.head_bias
    have = (large.count() - small.count()) / further
    grown = [p for p, q in zip(large.trainable, small.trainable, strict=False) if p["shape"] != q["shape"]]
    listing = ", ".join(f"{p['name']} {tuple(p['shape'])}" for p in grown) or "nothing"
    label = f"each id of the vocabulary has {have:g} trainable numbers, expected {want}"
    check(label, have == want, f"parameters that grow with the vocabulary: {listing}")


def _check_same_count(instance: Instance) -> None:
    """Check that there are as many trainable numbers as at construction."""
    before = instance.count()
    reply = instance.subject.link.request({"op": "parameters", "handle": instance.handle}, {})
    instance.listing = reply.header["parameters"]
    check(f"there are {instance.count()} trainable numbers, {before} before", instance.count() == before)


def _check_tied(instance: Instance, draw: Draw) -> None:
    """Check that another embedding of an id that does not occur changes the logits of that id alone."""
    token, ids = _text_without(instance, draw)
    logits = instance(ids)
    _check_one_column(
        f"the embedding of id {token}", logits, _redrawn(instance, TABLE, token, draw)(ids), token, instance
    )


def _check_one_column(what: str, before: Array, after: Array, token: int, instance: Instance) -> None:
    """Check that the logits of one id change, and no others; of log-probabilities, the differences to another id's."""
    if instance.subject.variant.log_probabilities:
        other = (token + 1) % before.shape[-1]
        before, after = (logits - logits[..., [other]] for logits in (before, after))
    check_differs(f"logits[..., {token}] when {what} changed", after[..., token], before[..., token], at_least=1e-4)
    rest = np.arange(before.shape[-1]) != token
    check_close(
        f"the logits of other ids when {what} changed", after[..., rest], before[..., rest], _tolerance(instance)
    )
