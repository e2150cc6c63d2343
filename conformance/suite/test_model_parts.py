"""Clauses of spec/model_parts.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    Kind,
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_repeated,
    check_zero,
    each_of,
    quoted,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.averages import check_varies_in_training
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.logits import (
    SLIGHT,
    centered,
    draw_ids,
    every_id,
    logits_of,
    logsumexp,
    own_tolerance,
    takes_block_size,
)
from conformkit.conformance.evidence.rows_of_ids import parameters_of, single_rows, unread_rows
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import first_position, sinusoids

SIZES: tuple[Mapping[str, Any], ...] = (
    {"num_layers": 1, "vocab_size": 11},
    {"num_layers": 2, "d_model": 8, "num_heads": 2, "d_ff": 14, "vocab_size": 13},
    {"num_layers": 3, "d_model": 20, "num_heads": 4, "d_ff": 9, "vocab_size": 7, "block_size": 6},
)
"""Depths, widths and vocabularies of oracle clauses; feed-forward networks wider and narrower than d_model."""
LONG: Mapping[str, Any] = {"num_layers": 1, "d_model": 6, "num_heads": 1, "vocab_size": 11, "block_size": 90}
"""A row longer than any other here."""


# -- parts -------------------------------------------------------------------------------------------------------------

_WIDE = 128
"""The width of a model whose first loss tells a usual initialization from one that is far too large."""


@clause("LM-DEPTH")
def test_every_block_takes_part(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=7, d_model=6, d_ff=5, vocab_size=5).randomize(draw)
    count, ids = instance.sizes["num_layers"], draw_ids(instance, draw, 2, 6)
    before, drawn = logits_of(instance, ids), draw.weights(instance.canonical)
    for block in sorted({0, count // 2, count - 1}):
        under(f"the weights of block {block} of {count} changed")
        instance.write({name: array for name, array in drawn.items() if name.startswith(f"blocks.{block}.")})
        after = logits_of(instance, ids)
        check_differs("the logits", after, before, at_least=SLIGHT)
        before = after


@clause("LM-HEADS")
def test_the_number_of_heads_reaches_the_blocks(model: Subject, draw: Draw) -> None:
    one, *others = [model.as_asked.build(num_layers=1, d_model=12, num_heads=heads) for heads in (3, 1, 2, 6)]
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
        raise NotApplicable.from_sizes("no two numbers of heads take the same weights")


def head_divisor(instance: Instance) -> float:
    """Return by what a model divides what its head reads."""
    variant = instance.subject.variant
    return math.sqrt(instance.sizes["d_model"]) if variant.tied and variant.tied_scale else 1.0


@clause("LM-FINAL-NORM")
def test_the_head_reads_a_stream_normalized_once(model: Subject, draw: Draw) -> None:
    instance = model.as_asked.build(vocab_size=37, d_model=12).randomize(draw)
    width, vocab_size = instance.sizes["d_model"], instance.sizes["vocab_size"]
    if vocab_size <= width:
        raise NotApplicable.from_sizes(
            "its limits allow no vocabulary larger than the width, which is needed to reconstruct the head's input"
        )
    rows = draw.values(vocab_size, width)
    if model.variant.log_probabilities:
        rows -= rows.mean(axis=0)  # what a log-softmax subtracts from all logits is then not seen
    rows_of_head = 3.0 * np.linalg.qr(rows)[0]  # (V, D), orthogonal columns
    instance.write({"embedding.weight" if model.variant.tied else "head.weight": rows_of_head})
    ids = draw_ids(instance, draw, 2, 7)

    def normalized(scale: Array, shift: Array) -> Array:
        """Return the final norm's output before scale and shift, computed from the logits."""
        stored = {"norm.weight": scale - (1.0 - model.variant.plain_gamma), "norm.bias": shift}
        weights = {name: value for name, value in stored.items() if name in instance.canonical}
        logits = logits_of(instance.write(weights), ids) - instance.weights.get("head.bias", np.zeros(vocab_size))
        read = logits @ rows_of_head / 9.0 * head_divisor(instance)  # (B, T, D)
        return np.asarray((read - shift) / scale)

    shift = draw.values(width) if "norm.bias" in instance.canonical else np.zeros(width)
    plain = normalized(np.ones(width), np.zeros(width))
    under("the final norm's scale and shift changed, and then undone")
    if model.variant.norm_weight != "none":
        check_close(
            "what the head reads",
            normalized(draw.uniform(width, low=0.5, high=2.0), shift),
            plain,
            10 * own_tolerance(instance),
        )
    slack = model.no_finer(1e-3) + 10 * model.variant.norm_eps
    under("the final norm's scale 1 and shift 0")
    if model.variant.norm == "layernorm":
        check_zero("the mean of what the head reads", plain.mean(axis=-1), at_most=slack)
    divisor = width - 1 if model.variant.norm == "layernorm" and model.variant.norm_deviation == "sample" else width
    square = (plain**2).sum(axis=-1) / divisor
    check_close("the mean square of what the head reads", square, np.ones_like(square), slack)


@clause("LM-NORM-EPS")
def test_the_final_norm_adds_the_declared_epsilon(model: Subject, draw: Draw) -> None:
    eps = model.variant.norm_eps
    faint = np.sqrt(eps) if model.variant.norm_deviation == "biased" else eps
    if (faint < 1e-4 and model.precision != "float64") or (model.half and model.variant.embedding_scale):
        raise NotApplicable.from_formats(f"rows as small as ε = {eps:g} are lost in {model.precision}'s rounding")
    instance = model.build(vocab_size=37, d_model=12, num_layers=1).randomize(draw)
    silent = (".attention.out.", ".attention.v.", ".feed_forward.down.", ".shared.down.", "positions.")
    parts = instance.canonical.items()
    silence = {name: np.zeros(part.shape) for name, part in parts if any(word in f".{name}" for word in silent)}
    rows, ids = instance.weights["embedding.weight"], np.arange(min(4, instance.sizes["vocab_size"]))[:, None]
    width = rows.shape[-1]
    scale = np.sqrt(width) if model.variant.embedding_scale else 1.0
    first = first_position(model.variant, instance.sizes)
    code = sinusoids(1, width, model.variant, first)[0] if model.variant.positions == "sinusoidal" else np.zeros(width)
    for times in each_of("times", (0.3, 1.0, 3.0)):
        instance.write({**silence, "embedding.weight": (times * faint * rows - code) / scale})
        bias = instance.weights.get("head.bias", 0.0)
        under(f"rows of the stream {times} √ε large, ε = {eps:g}")
        got, want = logits_of(instance, ids) - bias, instance.expected(ids) - bias
        check_close("the logits without their bias", got, want, 1e-2)  # 1e-6 in place of 1e-5 is off by 4e-2 and more


@clause("LM-HEAD-BIAS")
def test_the_head_adds_one_bias_for_each_id(model: Subject, draw: Draw) -> None:
    instance = model.build().randomize(draw)
    ids = draw_ids(instance, draw, 2, 5)
    before, bias = logits_of(instance, ids), instance.weights["head.bias"]
    for size in each_of("size", [2.0, 500.0]):
        change = draw.values(*bias.shape, scale=size)
        after = logits_of(instance.write({"head.bias": bias + change}), ids)
        scale = float(np.abs(before).max() + np.abs(change).max())
        have, want = (centered(model, shift) for shift in (after - before, np.broadcast_to(change, before.shape)))
        check_close("the change of the logits when the bias changes", have, want, own_tolerance(instance), scale=scale)


@clause("LM-EMB-SCALE")
def test_embeddings_enter_at_the_declared_scale(model: Subject, draw: Draw) -> None:
    instance = model.build(d_model=24).randomize(draw)  # the root of a head's width is neither 2 nor ½
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
        head = {} if not model.variant.tied else {"head.weight": written / head_divisor(instance)}
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
        ("2", 2.0),
        ("1/2", 0.5),
    ):
        if abs(scale - declared) > 1e-9:
            other = misfit(scale)
            check(
                f"the logits are those of embeddings times {name} (off by {other:.2g}), expected times {declared:.4g} "
                f"(off by {own:.2g})",
                other > (0.5 if model.half else 1e-3) * own,
            )


@clause("LM-ORACLE")
def test_logits_are_those_of_the_declared_composition(model: Subject, draw: Draw) -> None:
    for wanted in (*SIZES, LONG):
        instance = model.build(**wanted).randomize(draw)
        block_size = instance.sizes["block_size"]
        few = (every_id(instance, draw), draw_ids(instance, draw, 1, 1)) if wanted is not LONG else ()
        for ids in (*few, draw_ids(instance, draw, 2, block_size)):
            under(f"{wanted}, ids {ids.shape[0]}×{ids.shape[1]}")
            check_close("logits", logits_of(instance, ids), instance.expected(ids), own_tolerance(instance))


@clause("LM-VOCAB-RELABEL")
def test_renaming_the_ids_renames_the_logits(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).randomize(draw)
    vocab_size, ids = instance.sizes["vocab_size"], every_id(instance, draw)
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
    for wanted in each_of("wanted", SIZES):
        check_count(model.build(**wanted))
    model.bound.require_weights()


@clause("LM-BUFFERS")
def test_no_trainable_parameter_is_a_table_of_constants(model: Subject, draw: Draw) -> None:
    del draw
    takes_block_size(model)
    short, long = (model.build(block_size=size) for size in (9, 23))
    if short.sizes["block_size"] == long.sizes["block_size"]:
        raise NotApplicable.from_sizes("its limits allow one block size only")
    shapes = {p["name"]: tuple(p["shape"]) for p in short.trainable}
    grown = {p["name"]: tuple(p["shape"]) for p in long.trainable if shapes.get(p["name"]) != tuple(p["shape"])}
    few, many = short.sizes["block_size"], long.sizes["block_size"]
    rows = parameters_of(long, "positions.weight")  # one for each position, say
    further = (many - few) * long.sizes["d_model"]  # numbers, in whatever shape: (T, D), (1, T, D), (T + 2, D)
    tables = [
        name for name, shape in grown.items()
        if model.variant.positions != "learned"
        or (math.prod(shape) - math.prod(shapes.get(name, ())) != further and name not in rows)
    ]  # fmt: skip
    check(
        f"{quoted(tables)} is trainable and grows with block_size: make a mask or a table of positions a buffer",
        not tables,
        *(f"`{name}`: {shapes.get(name)} at block_size {few}, {grown[name]} at {many}" for name in tables),
    )


@clause("LM-BLOCK-SIZE-FREE")
def test_the_same_weights_serve_every_block_size(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    short, long = (model.build(block_size=size, seed=seed) for size, seed in ((8, 1), (21, 2)))
    sizes = short.sizes["block_size"], long.sizes["block_size"]
    check(
        f"block_size = {sizes[0]} gives {short.count()} trainable numbers, {sizes[1]} gives {long.count()}; both "
        "should give as many",
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


@clause("LM-INIT-CERTAIN")
def test_an_untrained_model_is_not_certain(model: Subject, draw: Draw) -> None:
    loss, best = _new_loss(model, draw, width=_WIDE)
    check(f"the loss of a new model is {loss:.3f} nats, expected at most {3 * best:.3f} = 3 ln V", loss <= 3 * best)


@clause("LM-INIT-LOSS")
def test_an_untrained_model_is_about_as_unsure_as_can_be(model: Subject, draw: Draw) -> None:
    loss, best = _new_loss(model, draw, width=64)
    check(
        f"the loss of a new model is {loss:.3f} nats, expected {best:.3f} = ln V, or up to 0.5 more",
        abs(loss - best) <= 0.5,
    )


def _new_loss(model: Subject, draw: Draw, *, width: int) -> tuple[float, float]:
    """Return the mean loss of two new models, every id as target, equally often, and ln V."""
    losses = []
    for seed in (1, 2):
        instance = model.build(
            vocab_size=65, d_model=width, num_heads=4, num_layers=2, d_ff=2 * width, block_size=16, seed=seed
        )
        if instance.sizes["d_model"] < width:
            raise NotApplicable.from_sizes(f"its limits allow a width of {instance.sizes['d_model']} at most")
        logits = logits_of(instance, draw_ids(instance, draw, 4, 16))
        losses.append(float((logsumexp(logits) - logits.mean(axis=-1)).mean()))
    return float(np.mean(losses)), math.log(instance.sizes["vocab_size"])


# -- modes and gradients -----------------------------------------------------------------------------------------------


@clause("LM-GRAD-ALL")
def test_every_trainable_parameter_gets_a_gradient(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=7, block_size=7).scatter(draw)
    ids = draw_ids(instance, draw, 3, instance.sizes["block_size"])
    ids = np.resize(draw.permutation(instance.sizes["vocab_size"]), ids.shape)  # each of few ids is read
    cotangent = draw.values(*ids.shape, instance.sizes["vocab_size"])
    found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True).parameters
    some = {name for name, grad in found.items() if grad is not None and grad.any()}
    spared = {n for rows in single_rows(instance) if model.variant.experts and not some.isdisjoint(rows) for n in rows}
    spared |= unread_rows(instance, (ids,))
    unreached = [name for name, grad in found.items() if grad is None and name not in spared]
    check(f"{quoted(unreached)} gets no gradient: the logits do not depend on it", not unreached, kind=Kind.NO_EFFECT)
    for name, grad in ((n, g) for n, g in found.items() if n not in spared or n in some):
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
    check_repeated("the logits of the same ids again", logits_of(instance, ids, seed=3), first)


@clause("LM-TRAIN-P0")
def test_without_dropout_training_mode_changes_nothing(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=6, dropout=0.0).scatter(draw)
    ids = draw_ids(instance, draw, 6, 7)
    for name, seeds in (("as drawn", range(6)), ("large", (6,))):
        if name == "large":
            instance.write_raw(_large_biases(instance, draw))
        want = logits_of(instance, ids)
        for seed in seeds:
            under(f"seed {seed}, logits {name}")
            after = logits_of(instance, ids, mode="train", seed=seed)
            check_close("the logits in training mode", after, want, own_tolerance(instance))


def _large_biases(instance: Instance, draw: Draw) -> dict[str, Array]:
    """Return large numbers for a bias with one number per id, which is added to the logits."""
    shape = [instance.sizes["vocab_size"]]
    if shape[0] in [size for name, size in instance.sizes.items() if name != "vocab_size"]:
        return {}
    return {p["name"]: draw.values(*shape, scale=100.0) for p in instance.trainable if list(p["shape"]) == shape}


@clause("LM-DROPOUT-ACTIVE")
def test_dropout_makes_training_calls_differ(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.5).scatter(draw)
    ids = draw_ids(instance, draw, 2, 6)
    one, other = (logits_of(instance, ids, mode="train", seed=seed) for seed in (1, 2))
    check_varies_in_training("the logits of two training calls with dropout 0.5", other, one, at_least=SLIGHT)


@clause("LM-MODE-KEPT")
def test_a_call_leaves_the_mode_as_it_is(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1, dropout=0.1).scatter(draw)
    ids = draw_ids(instance, draw)
    for mode, flag in each_of("mode, flag", [("train", True), ("eval", False)]):
        modes = instance.call(ids, mode=mode, seed=1, watch=True).modes
        found = " and ".join("training" if found else "eval" for found in modes)
        check(f"after a call in {mode} mode, its parts are in {found} mode", modes == (flag,))


@clause("LM-INPUT-UNCHANGED")
def test_the_ids_are_left_as_they_were(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for tokens in each_of("tokens", [7, 1]):
        ids = draw_ids(instance, draw, 2, tokens)
        ids[0, 0], ids[-1, -1] = 0, instance.sizes["vocab_size"] - 1
        after = instance.call(ids.copy(), echo=True).arguments["ids"]
        check_equal("the ids after the call", after, model.bound.to_theirs(ids))


@clause("LM-SIZES")
def test_the_logits_equal_the_definition_at_every_size(model: Subject, draw: Draw) -> None:
    check_definition_at_sizes(model, draw, after="LM-ORACLE", depth=2, coverage="some bands")
