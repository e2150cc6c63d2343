"""Clauses of spec/model.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_refuses,
    check_shape,
    check_zero,
    each_of,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.evidence.averages import drops_at_own_rate
from conformkit.conformance.evidence.indivisible_widths import check_no_feature_is_dropped
from conformkit.conformance.evidence.logits import (
    SLIGHT,
    causal_slack,
    centered,
    distinct_ids,
    draw_ids,
    logits_of,
    logits_of_rows,
    logsumexp,
    other_ids,
    own_tolerance,
    rows,
    takes_block_size,
)
from conformkit.conformance.evidence.rows_of_ids import rows_of_ids
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

# -- shape and range ---------------------------------------------------------------------------------------------------


@clause("LM-LOGITS-SHAPE")
def test_every_position_gets_one_logit_for_each_id(model: Subject, draw: Draw) -> None:
    for wanted in each_of(
        "wanted",
        [{"num_layers": 2, "vocab_size": 17}, {"num_layers": 1, "vocab_size": 5, "d_model": 8, "num_heads": 2}],
    ):
        instance = model.build(**wanted).scatter(draw)
        for batch, tokens in ((1, 1), (2, 7), (3, 4)):
            ids = draw_ids(instance, draw, batch, tokens)
            outcome = instance.call(ids)
            check_shape(
                "the logits of ids " + "×".join(map(str, ids.shape)),
                outcome.out,
                (*ids.shape, instance.sizes["vocab_size"]),
            )
            check(f"the logits are {outcome.dtype}, expected a floating-point type", "float" in outcome.dtype)
            check_finite("logits", outcome.out)


_LONG = (300, 140, 70)
"""Rows to try one after the other, until one does not take too long."""


@clause("LM-SHORT")
def test_every_length_up_to_the_block_size_is_taken(model: Subject, draw: Draw) -> None:
    instance, fresh = (model.build(num_layers=1, block_size=9) for _ in range(2))
    instance.scatter(draw)
    block_size = instance.sizes["block_size"]
    lengths = sorted({min(model.as_asked.tokens(n), block_size) for n in (*range(1, 10), block_size - 1, block_size)})
    for length in lengths:
        under(f"T={length}, block_size={block_size}")
        ids = draw.ids(instance.sizes["vocab_size"], rows(model, 2), length)
        check_finite("the logits", logits_of(instance, ids))
    weights = instance.read_raw()
    fresh.write_raw({p["name"]: weights[p["name"]] for p in fresh.trainable})
    if _long_row_is_slow(model, draw):
        return  # with its worker, both models are gone
    for length in (lengths[-1], lengths[0]):
        under(f"T={length} after T={', '.join(map(str, lengths))}, compared with a model that was not called before")
        ids = draw.ids(instance.sizes["vocab_size"], rows(model, 2), length)
        check_close("the logits", logits_of(instance, ids), logits_of(fresh, ids), own_tolerance(instance))


def _long_row_is_slow(model: Subject, draw: Draw) -> bool:
    """Check one row, longer than the usual hard-coded tables; a shorter one if that takes too long: slow is not wrong.

    Return whether a worker was lost. Raises WorkerLost if the shortest of these rows takes too long as well.
    """
    if "block_size" not in model.bound.construct.names():
        return False
    for wanted in _LONG:
        instance = model.build(num_layers=1, block_size=wanted, d_model=8, num_heads=2, d_ff=8)
        block_size = instance.sizes["block_size"]
        under(f"T={model.as_asked.tokens(block_size)}, block_size={block_size}")
        ids = draw_ids(instance, draw, 1, block_size)
        try:
            check_finite("the logits", logits_of(instance, ids))
        except WorkerLost as lost:
            if lost.kind != "timeout" or wanted == _LONG[-1]:
                raise
        else:
            return wanted != _LONG[0]
    return True


@clause("LM-OVERLONG")
def test_more_ids_than_the_block_size_are_refused_or_read_as_a_whole(model: Subject, draw: Draw) -> None:
    for instance, ids in _overlong(model, draw, 7, 2):
        label = f"a row of {ids.shape[1]} ids with block_size = {instance.sizes['block_size']}"
        if model.variant.positions == "learned":
            check_refuses(label, partial(instance, ids))
            continue
        instance(ids[:, : instance.sizes["block_size"]])
        got = None
        with refusing():
            got = instance(ids)
        if got is not None:
            longer = model.as_asked.build(**instance.sizes | {"block_size": ids.shape[1]})
            weights = instance.read_raw()
            longer.write_raw({p["name"]: weights[p["name"]] for p in instance.trainable})
            check_close(
                f"the logits of {label}, which was accepted,", got, logits_of(longer, ids), own_tolerance(longer)
            )


@clause("LM-OVERLONG-ONE")
def test_two_ids_are_refused_where_there_is_one_position(model: Subject, draw: Draw) -> None:
    _check_overlong(model, draw, 1)


def _check_overlong(model: Subject, draw: Draw, *sizes: int) -> None:
    for instance, ids in _overlong(model, draw, *sizes):
        label = f"a row of {ids.shape[1]} ids with block_size = {instance.sizes['block_size']}"
        check_refuses(label, partial(instance, ids))


def _overlong(model: Subject, draw: Draw, *sizes: int) -> Iterator[tuple[Instance, Array]]:
    """Yield models of these block sizes, each with rows that are too long for it."""
    takes_block_size(model)
    for wanted in each_of("wanted", sizes):
        instance = model.build(block_size=wanted).scatter(draw)
        block_size = instance.sizes["block_size"]
        for length in (block_size + 1, 2 * block_size + 3):
            yield instance, draw.ids(instance.sizes["vocab_size"], rows(model, 2), length)


@clause("LM-OOB")
def test_an_id_outside_the_vocabulary_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).scatter(draw)
    vocab_size = instance.sizes["vocab_size"]
    _check_refused(instance, draw, vocab_size, vocab_size + 5, 3 * vocab_size)


@clause("LM-OOB-NEGATIVE")
def test_a_negative_id_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).scatter(draw)
    _check_refused(instance, draw, -1, -instance.sizes["vocab_size"])


def _check_refused(instance: Instance, draw: Draw, *outside: int) -> None:
    for wrong in outside:
        for place in (0, -1):
            ids = draw_ids(instance, draw, 2, 5)
            ids[-1, place] = wrong
            known = instance.sizes["vocab_size"]
            check_refuses(f"the id {wrong} in a vocabulary of {known}", partial(instance, ids))


@clause("LM-DIVISIBLE")
def test_no_feature_is_dropped_where_the_heads_do_not_divide_the_width(model: Subject, draw: Draw) -> None:
    taken = model.bound.construct.names()
    if "num_heads" not in taken or "head_width" in taken or "//" in str(model.bound.construct):
        raise NotApplicable("its constructor takes no num_heads, or also takes the width of a head")
    sizes = model.sizes(d_model=12, num_heads=2)
    width, kv_heads = sizes["d_model"], sizes["kv_heads"]
    wrong = [
        n
        for n in range(2, 2 * width)
        if width % n and n % kv_heads == 0 and model.bound.limits.of("num_heads").allows(n)
    ]
    if not wrong:
        raise NotApplicable.from_sizes("its limits allow only numbers of heads that divide the width")
    for heads in {wrong[0], wrong[-1]}:
        own = heads if kv_heads == sizes["num_heads"] else kv_heads
        bad = sizes | {"num_heads": heads, "head_width": width // heads, "kv_heads": own}
        ids = draw.ids(sizes["vocab_size"], rows(model, 2), min(model.tokens(4), sizes["block_size"]))
        check_no_feature_is_dropped(model, bad, ids)


@clause("LM-LOGITS-RAW")
def test_logits_are_no_probabilities(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw, gain=2.0)
    logits = logits_of(instance, draw_ids(instance, draw, 3, 7))
    lowest, sums = float(logits.min()), logits.sum(axis=-1)
    check(
        f"the outputs of each position add up to {sums.flat[0]:.6g}, none is negative: probabilities, expected logits",
        lowest < 0.0 or float(np.ptp(sums)) > 1e-3,
    )
    total = logsumexp(logits)
    check(
        f"the exponentials of each position's outputs add up to exp({total.flat[0]:.3g}): they are log-probabilities, "
        "expected logits",
        float(np.ptp(total)) > 1e-3,
    )


# -- what depends on what ----------------------------------------------------------------------------------------------


@clause("LM-CAUSAL")
def test_later_ids_leave_earlier_logits_unchanged(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=5, dropout=0.0).scatter(draw, gain=2.0)
    ids = draw_ids(instance, draw, 1, 9)
    length = ids.shape[1]
    last = np.arange(length - 1)[:, None]
    others = other_ids(np.repeat(ids, length - 1, axis=0), instance.sizes["vocab_size"], draw)
    mixed = np.where(np.arange(length) <= last, ids, others)  # (T - 1, T), row t has other ids after position t
    for mode in ("eval",) if drops_at_own_rate(instance, ids) else ("eval", "train"):
        before = logits_of(instance, ids, mode=mode, seed=1)
        after = logits_of_rows(instance, mixed, mode=mode, seed=1)
        for place in range(length - 1):
            under(f"{mode} mode, all ids after position {place} of {length} changed")
            check_close("logits", after[place, : place + 1], before[0, : place + 1], causal_slack(instance))


@clause("LM-CAUSAL-GRAD")
def test_embeddings_of_later_ids_get_no_gradient_from_earlier_logits(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=3, vocab_size=41).scatter(draw, gain=1.5)
    vocab_size = instance.sizes["vocab_size"]
    if vocab_size in [size for name, size in instance.sizes.items() if name != "vocab_size"]:
        raise NotApplicable.from_sizes("its limits allow no vocabulary whose size differs from other axes")
    ids = distinct_ids(instance, draw, 8)
    length = ids.shape[1]
    for last in each_of("last", sorted({0, length // 2, max(length - 2, 0)})):
        later = ids[0, last + 1 :]
        cotangent = np.zeros((1, length, vocab_size))
        others = np.setdiff1d(np.arange(vocab_size), later)
        cotangent[0, last, others] = centered(model, draw.values(len(others)))
        under(f"the logits of position {last} differentiated, position {last + 1} and later hold different ids")
        found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True).parameters
        by_id = rows_of_ids(instance, {name: grad for name, grad in found.items() if grad is not None})
        reached = max((float(np.abs(grad).max()) for grad in by_id.values()), default=0.0)
        check("no parameter with one row per id has a gradient", reached > 0.0)
        for name, grad in by_id.items():
            check_zero(
                f"the gradient of {name} in the rows of later ids",
                grad[later],
                at_most=causal_slack(instance) * reached,
            )


@clause("LM-PREFIX")
def test_a_prefix_has_the_logits_that_it_has_within_a_longer_row(model: Subject, draw: Draw) -> None:
    for layers, longest, lengths in ((3, 9, (1, 2, 4, 7, 8)), (2, 70, (33, 66))):
        instance = model.build(num_layers=layers, block_size=longest).scatter(draw, gain=1.5)
        ids = draw_ids(instance, draw, 2, longest)
        whole = logits_of(instance, ids)
        for length in [n for n in lengths if n < ids.shape[1] and model.as_asked.tokens(n) == n]:
            under(f"the first {length} of {ids.shape[1]} ids")
            check_close("logits", logits_of(instance, ids[:, :length]), whole[:, :length], own_tolerance(instance))


@clause("LM-USES-PAST")
def test_every_earlier_id_reaches_the_last_logits(model: Subject, draw: Draw) -> None:
    long = 24 if model.half else 140  # in half precision one of many ids changes less than a rounding
    for length, places in ((8, range(7)), (long, (0, 9, long // 2))):
        instance = model.as_asked.build(num_layers=1, block_size=length).scatter(draw, gain=0.7)
        ids = draw_ids(instance, draw, 1, length)
        logits, count = _changed_one_by_one(instance, ids, places, draw), ids.shape[1]
        for place, after in logits.items():
            under(f"the id at position {place} of {count} changed")
            if place is not None and place < count - 1:
                check_differs("the last position's logits", after[-1], logits[None][-1], at_least=SLIGHT)


def _changed_one_by_one(instance: Instance, ids: Array, places: Iterable[int], draw: Draw) -> dict[int | None, Array]:
    """Return the logits (T, V) of a row (1, T), and those after another id at one position each, by position."""
    named = [None, *(place for place in places if place < ids.shape[1])]
    mixed = np.repeat(ids, len(named), axis=0)  # (P + 1, T)
    changed = other_ids(ids, instance.sizes["vocab_size"], draw)
    for row, place in enumerate(named):
        if place is not None:
            mixed[row, place] = changed[0, place]
    return dict(zip(named, logits_of_rows(instance, mixed), strict=True))


@clause("LM-TOKEN-DEP")
def test_each_position_reads_its_own_id(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1).scatter(draw)
    ids = draw_ids(instance, draw, 1, 7)
    logits = _changed_one_by_one(instance, ids, range(ids.shape[1]), draw)
    for place, after in logits.items():
        if place is not None:
            under(f"the id at position {place} of {ids.shape[1]} changed")
            check_differs(f"logits[:, {place}]", after[place], logits[None][place], at_least=SLIGHT)
    _check_beyond_a_byte(model, draw)


def _check_beyond_a_byte(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, vocab_size=300).scatter(draw)
    more = instance.sizes["vocab_size"] - 256
    if more < 1:
        return
    low = draw.ids(more, 1, min(model.tokens(3), instance.sizes["block_size"]))
    logits = logits_of_rows(instance, np.concatenate([low, low + 256]))
    for place, one in enumerate(low[0]):
        under(f"id {one + 256} in place of {one}")
        check_differs(f"logits[:, {place}]", logits[1, place], logits[0, place], at_least=SLIGHT)


@clause("LM-ORDER")
def test_one_block_tells_the_order_of_earlier_ids(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, vocab_size=13).scatter(draw, gain=1.5)
    if instance.sizes["num_layers"] != 1:
        raise NotApplicable.from_sizes(
            "its limits allow no model of one block, and several blocks can infer the order without positions"
        )
    ids = distinct_ids(instance, draw, 6)
    last = ids.shape[1] - 1
    pairs = [(one, other) for one, other in ((0, 1), (0, last - 1), (1, last - 1)) if 0 <= one < other < last]
    mixed = np.repeat(ids, len(pairs) + 1, axis=0)
    for row, pair in enumerate(pairs, start=1):
        mixed[row, list(pair)] = ids[0, list(pair)[::-1]]
    before, *swapped = logits_of_rows(instance, mixed)[:, -1]
    for (one, other), after in zip(pairs, swapped, strict=True):
        under(f"the ids at positions {one} and {other} of {last + 1} exchanged")
        check_differs("the last position's logits", after, before, at_least=SLIGHT)


@clause("LM-POSITIONS-ADDED")
def test_a_repeated_id_has_other_logits_at_every_position(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1).scatter(draw, gain=1.5)
    for batch in (1, 2):
        ids = draw_ids(instance, draw, batch, instance.sizes["block_size"])
        ids[:] = ids[:, :1]
        logits = logits_of(instance, ids)
        for place in range(1, ids.shape[1]):
            for earlier in range(place):
                under(f"one id at {ids.shape[1]} positions, positions {earlier} and {place} compared")
                check_differs("the logits", logits[:, place], logits[:, earlier], at_least=SLIGHT)


@clause("LM-BATCH-INDEP")
def test_a_row_has_the_logits_that_it_has_alone(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=2, vocab_size=6).scatter(draw, gain=1.5)
    for wanted, tokens, alone in ((3, 5, (0, 1, 2)), (3, 3, (0, 2)), (instance.sizes["vocab_size"], 4, (0, 5))):
        batch = rows(model, wanted, least=2)
        ids = draw_ids(instance, draw, batch, tokens)
        together = logits_of(instance, ids)
        for row in (row for row in alone if row < batch):
            under(f"row {row} of {batch}, T={ids.shape[1]}, V={instance.sizes['vocab_size']}")
            check_close("logits", logits_of(instance, ids[row : row + 1])[0], together[row], own_tolerance(instance))
