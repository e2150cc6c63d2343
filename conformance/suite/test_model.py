"""Clauses of spec/model.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.binding.sizes import nearest_allowed
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
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject

Array = npt.NDArray[Any]

SIZES = (
    {"num_layers": 1, "vocab_size": 11},
    {"num_layers": 2, "d_model": 8, "num_heads": 2, "d_ff": 14, "vocab_size": 13},
    {"num_layers": 3, "d_model": 20, "num_heads": 4, "d_ff": 9, "vocab_size": 7, "block_size": 6},
)
"""Depths, widths and vocabularies that oracle clauses go through; a feed-forward wider and narrower than the stream."""
SLIGHT = 1e-5
"""What two logits of order 1 differ by at least, where something must matter: beyond rounding in float32."""


def draw_ids(model: Instance, draw: Draw, batch: int = 2, tokens: int = 7) -> Array:
    """Draw ids (B, T) within the block size and the declared limits."""
    length = min(model.subject.tokens(tokens), model.sizes["block_size"])
    return draw.ids(model.sizes["vocab_size"], rows(model.subject, batch), length)


def logits_of(model: Instance, ids: Array, **options: Any) -> Array:
    """Call in eval mode, unless the options say otherwise, and return logits of the right shape."""
    out = model.call(ids, **options).out
    check_shape("the logits", out, (*ids.shape, model.sizes["vocab_size"]))
    return np.asarray(out, np.float64)


def distinct_ids(model: Instance, draw: Draw, tokens: int) -> Array:
    """Draw one row (1, T) of ids none of which comes twice, as far as the vocabulary reaches."""
    length = min(model.subject.tokens(tokens), model.sizes["block_size"], model.sizes["vocab_size"])
    return draw.permutation(model.sizes["vocab_size"])[None, :length]


def rows(subject: Subject, wanted: int, *, least: int = 1) -> int:
    """Return how many sequences may be passed at once, near the wanted number."""
    found = nearest_allowed("batch", wanted, subject.bound.limits)
    if found < least:
        raise NotApplicable(f"its limits allow {found} sequence at a time, this takes {least}")
    return found


def other_ids(ids: Array, vocab_size: int, draw: Draw) -> Array:
    """Return an id different from the given one at every place."""
    return (ids + 1 + draw.ids(max(vocab_size - 1, 1), *ids.shape)) % vocab_size


def depth(model: Instance) -> int:
    """Return how many components the logits pass."""
    return 2 * int(model.sizes["num_layers"]) + 1


def own_tolerance(model: Instance) -> float:
    """Return how far two results of the implementation itself may be apart that are equal in exact arithmetic."""
    return model.subject.tolerance(depth(model))


def takes_block_size(model: Subject) -> None:
    """Raise NotApplicable unless the constructor knows a block size."""
    if "block_size" not in model.bound.construct.names():
        raise NotApplicable("its constructor takes no block_size")


def logsumexp(logits: Array) -> Array:
    """Return the logarithm of the softmax's denominator, over the last axis."""
    top = logits.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logits - top[..., None]).sum(axis=-1)))


# -- shape and range ---------------------------------------------------------------------------------------------------


@clause("LM-LOGITS-SHAPE")
def test_every_position_gets_one_logit_for_each_id(model: Subject, draw: Draw) -> None:
    for wanted in each_of(
        [{"num_layers": 2, "vocab_size": 17}, {"num_layers": 1, "vocab_size": 5, "d_model": 8, "num_heads": 2}]
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
            check(f"the logits are {outcome.dtype}, want a floating-point type", "float" in outcome.dtype)
            check_finite("logits", outcome.out)


@clause("LM-SHORT")
def test_every_length_up_to_the_block_size_is_taken(model: Subject, draw: Draw) -> None:
    instance, fresh = model.build(block_size=9).scatter(draw), model.build(block_size=9)
    block_size = instance.sizes["block_size"]
    lengths = sorted({min(model.tokens(n), block_size) for n in (*range(1, 10), block_size - 1, block_size)})
    for length in lengths:
        under(f"T={length}, block_size={block_size}")
        ids = draw_ids(instance, draw, 2, length)
        check_finite("the logits", logits_of(instance, ids))
    weights = instance.read_raw()
    fresh.write_raw({p["name"]: weights[p["name"]] for p in fresh.trainable})
    for length in (lengths[-1], lengths[0]):
        under(f"T={length} after T={', '.join(map(str, lengths))}, compared with a model that was not called before")
        ids = draw_ids(instance, draw, 2, length)
        check_close("the logits", logits_of(instance, ids), logits_of(fresh, ids), own_tolerance(instance))


@clause("LM-OVERLONG")
def test_more_ids_than_the_block_size_are_refused(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    for wanted in each_of([7, 1]):
        instance = model.build(block_size=wanted).scatter(draw)
        block_size = instance.sizes["block_size"]
        for length in (block_size + 1, 2 * block_size + 3):
            ids = draw.ids(instance.sizes["vocab_size"], rows(model, 2), length)
            check_refuses(f"a row of {length} ids with block_size = {block_size}", partial(instance, ids))


@clause("LM-OOB")
def test_an_id_outside_the_vocabulary_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).scatter(draw)
    vocab_size = instance.sizes["vocab_size"]
    for wrong in (vocab_size, vocab_size + 5, -1, -vocab_size):
        for place in (0, -1):
            ids = draw_ids(instance, draw, 2, 5)
            ids[-1, place] = wrong
            check_refuses(f"the id {wrong} in a vocabulary of {vocab_size}", partial(instance, ids))


@clause("LM-DIVISIBLE")
def test_a_width_that_the_heads_do_not_divide_is_refused(model: Subject, draw: Draw) -> None:
    taken = model.bound.construct.names()
    if "num_heads" not in taken or "head_width" in taken:
        raise NotApplicable("its constructor takes no num_heads, or takes the width of a head besides")
    sizes = model.sizes(d_model=12, num_heads=2)
    width, kv_heads = sizes["d_model"], sizes["kv_heads"]
    wrong = [
        n
        for n in range(2, 2 * width)
        if width % n and n % kv_heads == 0 and model.bound.limits.of("num_heads").allows(n)
    ]
    if not wrong:
        raise NotApplicable("its limits allow no number of heads that does not divide the width")
    for heads in {wrong[0], wrong[-1]}:
        bad = sizes | {"num_heads": heads, "head_width": max(width // heads, 1)}
        ids = draw.ids(sizes["vocab_size"], rows(model, 2), min(model.tokens(4), sizes["block_size"]))
        check_refuses(f"d_model = {width} with num_heads = {heads}", partial(_construct_and_call, model, bad, ids))


def _construct_and_call(model: Subject, sizes: Mapping[str, Any], ids: Array) -> Array:
    return model.construct(sizes)(ids)


@clause("LM-LOGITS-RAW")
def test_logits_are_no_probabilities(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw, gain=2.0)
    logits = logits_of(instance, draw_ids(instance, draw, 3, 7))
    lowest, sums = float(logits.min()), logits.sum(axis=-1)
    check(
        f"the outputs of each position add up to {sums.flat[0]:.6g}, none is negative: probabilities, want logits",
        lowest < 0.0 or float(np.ptp(sums)) > 1e-3,
    )
    total = logsumexp(logits)
    check(
        f"the exponentials of each position's outputs add up to exp({total.flat[0]:.3g}): they are log-probabilities, "
        "want logits",
        float(np.ptp(total)) > 1e-3,
    )


# -- what depends on what ----------------------------------------------------------------------------------------------


@clause("LM-CAUSAL")
def test_later_ids_leave_earlier_logits_unchanged(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=2, dropout=0.0).scatter(draw, gain=2.0)
    ids = draw_ids(instance, draw, 1, 9)
    length = ids.shape[1]
    for mode, places in (("eval", range(length - 1)), ("train", range(0, length - 1, 3))):
        before = logits_of(instance, ids, mode=mode, seed=1)
        for last in places:
            under(f"{mode} mode, all ids after position {last} of {length} changed")
            mixed = np.where(np.arange(length) <= last, ids, other_ids(ids, instance.sizes["vocab_size"], draw))
            after = logits_of(instance, mixed, mode=mode, seed=1)
            check_close("logits", after[:, : last + 1], before[:, : last + 1], causal_slack(instance))


def causal_slack(model: Instance) -> float:
    """Return what may be left of a later id: nothing, or rounding where a mask is applied after the softmax."""
    return 1e-12 if model.subject.precision == "float64" and model.dtype == "float64" else own_tolerance(model)


@clause("LM-CAUSAL-GRAD")
def test_embeddings_of_later_ids_get_no_gradient_from_earlier_logits(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=3, vocab_size=17).scatter(draw, gain=1.5)
    vocab_size = instance.sizes["vocab_size"]
    if vocab_size in [size for name, size in instance.sizes.items() if name != "vocab_size"]:
        raise NotApplicable("its limits allow no vocabulary whose size tells it from other axes")
    ids = distinct_ids(instance, draw, 8)
    length = ids.shape[1]
    for last in each_of(sorted({0, length // 2, max(length - 2, 0)})):
        later = ids[0, last + 1 :]
        cotangent = np.zeros((1, length, vocab_size))
        cotangent[0, last] = draw.values(vocab_size)
        cotangent[0, last, later] = 0.0
        under(f"the logits of position {last} differentiated, position {last + 1} and later hold ids of their own")
        found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True).parameters
        by_id = {
            name: np.moveaxis(grad, grad.shape.index(vocab_size), 0)
            for name, grad in found.items()
            if grad is not None and vocab_size in grad.shape
        }
        reached = max((float(np.abs(grad).max()) for grad in by_id.values()), default=0.0)
        check("no parameter with one row an id has a gradient", reached > 0.0)
        for name, grad in by_id.items():
            check_zero(
                f"the gradient of {name} in the rows of later ids",
                grad[later],
                at_most=causal_slack(instance) * reached,
            )


@clause("LM-PREFIX")
def test_a_prefix_has_the_logits_that_it_has_within_a_longer_row(model: Subject, draw: Draw) -> None:
    for longest, lengths in ((9, range(1, 9)), (70, (5, 33, 66))):
        instance = model.build(num_layers=2, block_size=longest).scatter(draw, gain=1.5)
        ids = draw_ids(instance, draw, 2, longest)
        whole = logits_of(instance, ids)
        for length in [n for n in lengths if n < ids.shape[1] and model.tokens(n) == n]:
            under(f"the first {length} of {ids.shape[1]} ids")
            check_close("logits", logits_of(instance, ids[:, :length]), whole[:, :length], own_tolerance(instance))


@clause("LM-USES-PAST")
def test_every_earlier_id_reaches_the_last_logits(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1).scatter(draw)
    ids = draw_ids(instance, draw, 1, 8)
    before = logits_of(instance, ids)
    changed = other_ids(ids, instance.sizes["vocab_size"], draw)
    for place in range(ids.shape[1] - 1):
        under(f"the id at position {place} of {ids.shape[1]} changed")
        mixed = np.where(np.arange(ids.shape[1]) == place, changed, ids)
        check_differs("the last position's logits", logits_of(instance, mixed)[:, -1], before[:, -1], at_least=SLIGHT)


@clause("LM-TOKEN-DEP")
def test_each_position_reads_its_own_id(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1).scatter(draw)
    ids = draw_ids(instance, draw, 1, 7)
    before = logits_of(instance, ids)
    changed = other_ids(ids, instance.sizes["vocab_size"], draw)
    for place in range(ids.shape[1]):
        under(f"the id at position {place} of {ids.shape[1]} changed")
        mixed = np.where(np.arange(ids.shape[1]) == place, changed, ids)
        check_differs(f"logits[:, {place}]", logits_of(instance, mixed)[:, place], before[:, place], at_least=SLIGHT)


@clause("LM-ORDER")
def test_one_block_tells_the_order_of_earlier_ids(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, vocab_size=13).scatter(draw, gain=1.5)
    if instance.sizes["num_layers"] != 1:
        raise NotApplicable("its limits allow no model of one block, and several tell the order without positions")
    ids = distinct_ids(instance, draw, 6)
    last = ids.shape[1] - 1
    before = logits_of(instance, ids)
    for one, other in ((0, 1), (0, last - 1), (1, last - 1)):
        if 0 <= one < other < last:
            under(f"the ids at positions {one} and {other} of {last + 1} exchanged")
            swapped = ids.copy()
            swapped[:, [one, other]] = ids[:, [other, one]]
            check_differs(
                "the last position's logits", logits_of(instance, swapped)[:, -1], before[:, -1], at_least=SLIGHT
            )


@clause("LM-POSITIONS-ADDED")
def test_a_repeated_id_has_other_logits_at_every_position(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1).scatter(draw, gain=1.5)
    for batch in (1, 2):
        ids = draw_ids(instance, draw, batch, 6)
        ids[:] = ids[:, :1]
        logits = logits_of(instance, ids)
        for place in range(1, ids.shape[1]):
            for earlier in range(place):
                under(f"one id at {ids.shape[1]} positions, positions {earlier} and {place} compared")
                check_differs("the logits", logits[:, place], logits[:, earlier], at_least=SLIGHT)


@clause("LM-BATCH-INDEP")
def test_a_row_has_the_logits_that_it_has_alone(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=2).scatter(draw, gain=1.5)
    batch = rows(model, 3, least=2)
    for tokens in each_of([5, batch]):
        ids = draw_ids(instance, draw, batch, tokens)
        together = logits_of(instance, ids)
        for row in range(batch):
            under(f"row {row} of {batch}, T={ids.shape[1]}")
            check_close("logits", logits_of(instance, ids[row : row + 1])[0], together[row], own_tolerance(instance))


# -- parts -------------------------------------------------------------------------------------------------------------


@clause("LM-DEPTH")
def test_every_block_takes_part(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=3).randomize(draw)
    count, ids = instance.sizes["num_layers"], draw_ids(instance, draw, 2, 6)
    before = logits_of(instance, ids)
    for block in range(count):
        under(f"the weights of block {block} of {count} changed")
        drawn = draw.weights(instance.canonical)
        instance.write({name: array for name, array in drawn.items() if name.startswith(f"blocks.{block}.")})
        after = logits_of(instance, ids)
        check_differs("the logits", after, before, at_least=SLIGHT)
        before = after


@clause("LM-HEADS")
def test_the_number_of_heads_reaches_the_blocks(model: Subject, draw: Draw) -> None:
    one, *others = [model.build(num_layers=1, d_model=12, num_heads=heads) for heads in (3, 1, 2, 6)]
    one.randomize(draw)
    shapes = {name: parameter.shape for name, parameter in one.canonical.items()}
    ids = draw_ids(one, draw, 2, 7)
    logits, compared = logits_of(one, ids), 0
    for other in others:
        same_shapes = {name: parameter.shape for name, parameter in other.canonical.items()} == shapes
        if other.sizes["num_heads"] == one.sizes["num_heads"] or not same_shapes:
            continue
        under(f"the same weights, {other.sizes['num_heads']} heads for {one.sizes['num_heads']}")
        check_differs("the logits", logits_of(other.write(one.weights), ids), logits, at_least=SLIGHT)
        compared += 1
    if not compared:
        raise NotApplicable("no two numbers of heads take the same weights")


@clause("LM-FINAL-NORM")
def test_the_head_reads_a_stream_normalized_once(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, d_model=12).randomize(draw)
    width, vocab_size = instance.sizes["d_model"], instance.sizes["vocab_size"]
    if vocab_size < width:
        raise NotApplicable(
            "its limits allow no vocabulary larger than the width, which would show what the head reads"
        )
    rows_of_head = 3.0 * np.linalg.qr(draw.values(vocab_size, width))[0]  # (V, D), orthogonal columns
    instance.write({"embedding.weight" if model.variant.tied else "head.weight": rows_of_head})
    ids = draw_ids(instance, draw, 2, 7)

    def normalized(scale: Array, shift: Array) -> Array:
        """Return what the final norm made before its scale and shift, read off the logits."""
        weights = {"norm.weight": scale} | ({"norm.bias": shift} if "norm.bias" in instance.canonical else {})
        logits = logits_of(instance.write(weights), ids) - instance.weights.get("head.bias", np.zeros(vocab_size))
        read = logits @ rows_of_head / 9.0  # (B, T, D)
        return np.asarray((read - shift) / scale)

    shift = draw.values(width) if "norm.bias" in instance.canonical else np.zeros(width)
    plain = normalized(np.ones(width), np.zeros(width))
    under("the final norm's scale and shift changed, and then undone")
    check_close(
        "what the head reads",
        normalized(draw.uniform(width, low=0.5, high=2.0), shift),
        plain,
        10 * own_tolerance(instance),
    )
    slack = 1e-3 + 10 * model.variant.norm_eps
    under("the final norm's scale 1 and shift 0")
    if model.variant.norm == "layernorm":
        check_zero("the mean of what the head reads", plain.mean(axis=-1), at_most=slack)
    divisor = width - 1 if model.variant.norm == "layernorm" and model.variant.norm_deviation == "sample" else width
    square = (plain**2).sum(axis=-1) / divisor
    check_close("the mean square of what the head reads", square, np.ones_like(square), slack)


@clause("LM-HEAD-BIAS")
def test_the_head_adds_one_bias_for_each_id(model: Subject, draw: Draw) -> None:
    instance = model.build().randomize(draw)
    ids = draw_ids(instance, draw, 2, 5)
    before, bias = logits_of(instance, ids), instance.weights["head.bias"]
    change = draw.values(*bias.shape, scale=2.0)
    after = logits_of(instance.write({"head.bias": bias + change}), ids)
    scale = float(np.abs(before).max() + np.abs(change).max())
    want = np.broadcast_to(change, before.shape)
    check_close(
        "the change of the logits when the bias changes", after - before, want, own_tolerance(instance), scale=scale
    )


@clause("LM-EMB-SCALE")
def test_embeddings_enter_at_the_declared_scale(model: Subject, draw: Draw) -> None:
    instance = model.build(d_model=12).randomize(draw)
    silent = (".v.weight", ".v.bias", ".out.bias", ".down.weight", ".down.bias")
    blocks = {
        n: np.zeros(p.shape) for n, p in instance.canonical.items() if n.startswith("blocks.") and n.endswith(silent)
    }
    instance.write(blocks)
    ids = draw_ids(instance, draw, 2, 7)
    logits, root = logits_of(instance, ids), math.sqrt(instance.sizes["d_model"])
    written, declared = instance.weights["embedding.weight"], root if model.variant.embedding_scale else 1.0

    def misfit(scale: float) -> float:
        """Return how far the logits are from those of embeddings at this scale; a tied head keeps its own."""
        head = {} if not model.variant.tied else {"head.weight": written}
        weights = instance.weights | {"embedding.weight": written * scale / declared}
        untied = model.variant.but(tied=False)
        component = model.bound.component
        want = component.forward(weights | (head or {}), {"ids": ids}, instance.sizes, untied)
        return float(np.abs(logits - want).max())

    own = misfit(declared)
    for name, scale in (
        ("1", 1.0),
        ("√d_model", root),
        ("1/√d_model", 1 / root),
        ("d_model", root**2),
        ("1/d_model", root**-2),
    ):
        if abs(scale - declared) > 1e-9:
            other = misfit(scale)
            check(
                f"the logits are those of embeddings times {name} (off by {other:.2g}), want times {declared:.4g} "
                f"(off by {own:.2g})",
                other > 1e-3 * own,
            )


@clause("LM-ORACLE")
def test_logits_are_those_of_the_declared_composition(model: Subject, draw: Draw) -> None:
    for wanted in each_of(SIZES):
        instance = model.build(**wanted).randomize(draw)
        for batch, tokens in ((2, 5), (1, 1), (3, 9)):
            ids = draw_ids(instance, draw, batch, tokens)
            check_close("logits", logits_of(instance, ids), instance.expected(ids), own_tolerance(instance))


@clause("LM-VOCAB-RELABEL")
def test_renaming_the_ids_renames_the_logits(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).randomize(draw)
    vocab_size = instance.sizes["vocab_size"]
    length = min(model.tokens(6), instance.sizes["block_size"])
    count = rows(model, -(-vocab_size // length))
    ids = np.resize(draw.permutation(vocab_size), (count, length))
    before, new_id = logits_of(instance, ids), draw.permutation(vocab_size)
    old_id = np.argsort(new_id)
    by_id = [name for name in ("embedding.weight", "head.weight", "head.bias") if name in instance.weights]
    instance.write({name: instance.weights[name][old_id] for name in by_id})
    after = logits_of(instance, new_id[ids])
    check_close("the logits, ids renamed back", after[..., new_id], before, own_tolerance(instance))


# -- parameters --------------------------------------------------------------------------------------------------------


@clause("LM-PARAM-COUNT")
def test_the_parameters_are_those_of_the_definition(model: Subject, draw: Draw) -> None:
    del draw
    for wanted in each_of(SIZES):
        instance = model.build(**wanted)
        want = sum(math.prod(parameter.shape) for parameter in instance.canonical.values())
        check(
            f"it has {instance.count()} trainable numbers, the definition {want}: {instance.count() - want:+d}",
            instance.count() == want,
            "yours: " + ", ".join(f"{p['name']} {tuple(p['shape'])}" for p in instance.trainable)[:1500],
            "its: " + ", ".join(f"{name} {parameter.shape}" for name, parameter in instance.canonical.items())[:1500],
        )
    model.bound.require_weights()


@clause("LM-BUFFERS")
def test_no_trainable_parameter_is_a_table_of_constants(model: Subject, draw: Draw) -> None:
    del draw
    takes_block_size(model)
    short, long = (model.build(block_size=size) for size in (9, 23))
    if short.sizes["block_size"] == long.sizes["block_size"]:
        raise NotApplicable("its limits allow one block size only")
    shapes = {p["name"]: tuple(p["shape"]) for p in short.trainable}
    grown = {p["name"]: tuple(p["shape"]) for p in long.trainable if shapes.get(p["name"]) != tuple(p["shape"])}
    learned = (long.sizes["block_size"], long.sizes["d_model"])
    tables = [
        name
        for name, shape in grown.items()
        if model.variant.positions != "learned" or sorted(shape) != sorted(learned)
    ]
    check(
        f"{', '.join(tables)} is trainable and grows with block_size: a mask or a table of positions is no parameter",
        not tables,
        *(
            f"{name}: {shapes.get(name)} at block_size {short.sizes['block_size']}, {grown[name]} at {learned[0]}"
            for name in tables
        ),
    )


@clause("LM-BLOCK-SIZE-FREE")
def test_the_same_weights_serve_every_block_size(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    short, long = (model.build(block_size=size, seed=seed) for size, seed in ((8, 1), (21, 2)))
    sizes = short.sizes["block_size"], long.sizes["block_size"]
    check(
        f"block_size = {sizes[0]} gives {short.count()} trainable numbers, {sizes[1]} gives {long.count()}, want equal",
        short.count() == long.count(),
    )
    short.scatter(draw)
    weights = short.read_raw()
    long.write_raw({p["name"]: weights[p["name"]] for p in short.trainable})
    ids = draw_ids(short, draw, 2, 6)
    under(f"the same weights with block_size = {sizes[0]} and {sizes[1]}")
    check_close("logits", logits_of(long, ids), logits_of(short, ids), own_tolerance(short))


@clause("LM-STATE-ROUNDTRIP")
def test_a_model_that_is_given_the_state_of_another_gives_its_logits(model: Subject, draw: Draw) -> None:
    one, other = model.build(seed=1), model.build(seed=2)
    one.scatter(draw)
    ids = draw_ids(one, draw, 2, 6)
    want = logits_of(one, ids)
    names = {p["name"] for p in other.listing}
    other.write_raw({name: array for name, array in one.read_raw().items() if name in names})
    check_close("the logits of the second model", logits_of(other, ids), want, own_tolerance(one))


@clause("LM-SEED")
def test_the_seed_decides_the_initial_parameters(model: Subject, draw: Draw) -> None:
    del draw
    first, again, other = (model.build(seed=seed).read_raw() for seed in (11, 11, 12))
    for name, array in first.items():
        check_equal(f"{name} after the same seed", again[name], array)
    check(
        "two seeds give the same initial parameters", any((other[name] != array).any() for name, array in first.items())
    )


@clause("LM-INIT-LOSS")
def test_an_untrained_model_is_about_as_unsure_as_can_be(model: Subject, draw: Draw) -> None:
    losses = []
    for seed in (1, 2, 3):
        instance = model.build(vocab_size=65, d_model=64, num_heads=4, num_layers=2, d_ff=128, block_size=16, seed=seed)
        ids = draw_ids(instance, draw, 4, 16)
        logits = logits_of(instance, ids)
        losses.append(float((logsumexp(logits) - logits.mean(axis=-1)).mean()))  # every id as target, equally often
    best = math.log(instance.sizes["vocab_size"])
    loss = float(np.mean(losses))
    check(
        f"the loss of a new model is {loss:.3f} nats, want {best:.3f} = ln V, or up to 0.5 more",
        abs(loss - best) <= 0.5,
    )


# -- modes and gradients -----------------------------------------------------------------------------------------------


@clause("LM-GRAD-ALL")
def test_every_trainable_parameter_gets_a_gradient(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=2, block_size=7).scatter(draw)
    ids = draw_ids(instance, draw, 3, instance.sizes["block_size"])
    cotangent = draw.values(*ids.shape, instance.sizes["vocab_size"])
    found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True).parameters
    unreached = [name for name, grad in found.items() if grad is None]
    check(f"{', '.join(unreached)} gets no gradient: the logits do not depend on it", not unreached)
    for name, grad in found.items():
        assert grad is not None
        check_finite(f"the gradient of {name}", grad)
        shifts_keys = model.variant.qkv_bias and grad.ndim == 1
        check(f"the gradient of {name} is zero", shifts_keys or bool((grad != 0.0).any()))


@clause("LM-EVAL-DET")
def test_eval_mode_repeats_itself_exactly(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.5).scatter(draw)
    ids, between = draw_ids(instance, draw, 2, 6), draw_ids(instance, draw, 3, 4)
    first = logits_of(instance, ids, seed=1)
    instance.call(between, seed=2)
    check_equal("the logits of the same ids again", logits_of(instance, ids, seed=3), first)


@clause("LM-TRAIN-P0")
def test_without_dropout_training_mode_changes_nothing(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.0).scatter(draw)
    ids = draw_ids(instance, draw, 3, 7)
    want = logits_of(instance, ids)
    for seed in each_of([1, 2]):
        check_close(
            "the logits in training mode",
            logits_of(instance, ids, mode="train", seed=seed),
            want,
            own_tolerance(instance),
        )


@clause("LM-DROPOUT-ACTIVE")
def test_dropout_makes_training_calls_differ(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.5).scatter(draw)
    ids = draw_ids(instance, draw, 2, 6)
    one, other = (logits_of(instance, ids, mode="train", seed=seed) for seed in (1, 2))
    check_differs("the logits of two training calls with dropout 0.5", other, one, at_least=SLIGHT)


@clause("LM-INPUT-UNCHANGED")
def test_the_ids_are_left_as_they_were(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for tokens in each_of([7, 1]):
        ids = draw_ids(instance, draw, 2, tokens)
        after = instance.call(ids.copy(), echo=True).arguments["ids"]
        check_equal("the ids after the call", after, model.bound.to_theirs(ids))
