"""Texts for an encoder: ids, segments and padding, with what every model that reads them must do alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_refuses,
    check_shape,
    quoted,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.evidence.dependence import (
    check_hidden_in_training,
    check_moves,
    check_still,
    keys_mask,
)
from conformkit.conformance.evidence.rows_of_ids import unread_rows
from conformkit.conformance.evidence.sublayers import layers_of, silent
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.spec.arrays import Array

__all__ = [
    "build",
    "changed",
    "check_alone",
    "check_another_order",
    "check_extreme_scores",
    "check_gradients_reach",
    "check_layers_drop",
    "check_longest",
    "check_oracle",
    "check_padding",
    "check_padding_in_training",
    "check_part",
    "check_past",
    "check_plain_in_training",
    "check_raw",
    "check_reads_all",
    "check_real_positions",
    "check_refused",
    "check_rows",
    "check_segments",
    "check_too_long",
    "plain_norms",
    "quiet",
    "text",
    "trained_segments",
    "with_trained_segments",
]  # fmt: skip

SUBLAYERS = ("attention", "feed_forward")
_SHOWN = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "num_segments", "max_len", "pad_id")
_WEIGHTS = 24
"""Draws after which two logits of rows that are alike lie above 0 once in 10¹⁴ right models."""
_PAD = 2
"""The padding id of texts that are made by hand: code that takes 0 for padding anyhow reads it as padding there."""
_GAPPED = 3
"""Texts of so many positions have a middle."""
_SENTENCES = 2
"""Segments of a text: a first sentence and a second one."""
_OVERFLOWING = 1e4
"""A factor with which exponentials of scores overflow, in any number format."""
_SMALL = 1e-5
"""Tables this small show a norm's ε, even one of 1e-12."""


def build(model: Subject, width: int = 12, heads: int = 3, **options: Any) -> Instance:
    """Build a model, or embeddings, of small sizes, with a padding id other than 0; failures name them."""
    if model.offers("pad-id"):
        options = {"pad_id": _PAD, **options}
    instance = model.build(d_model=width, num_heads=heads, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in _SHOWN if name in instance.sizes))
    return instance


def text(instance: Instance, draw: Draw, batch: int, tokens: int) -> tuple[Array, Array]:
    """Return ids without padding and segments, (B, T)."""
    sizes = instance.sizes
    length = min(instance.subject.tokens(tokens), sizes["max_len"])
    ids = real_ids(draw, sizes["vocab_size"], sizes["pad_id"], batch, length)
    return ids, draw.ids(sizes["num_segments"], batch, length)


def trained_segments(instance: Instance, segments: Array) -> Array:
    """Return segments of which each has a row that is trained.

    Where the code has a fixed number of them, two sentences and more, the first row may be that of padding.
    """
    allowed = instance.subject.bound.limits.sizes.get("num_segments")
    fixed = allowed is not None and allowed.min == allowed.max == instance.sizes["num_segments"]
    return np.maximum(segments, 1) if fixed and instance.sizes["num_segments"] > _SENTENCES else segments


def with_trained_segments(
    instance: Instance, inputs: tuple[Array, ...], _draw: Draw
) -> tuple[tuple[Array, ...], Array]:
    """Return ids (B, T) and segments of which each has a row that is trained, and that all positions are real."""
    ids, *rest = inputs
    return (ids, *(trained_segments(instance, segments) for segments in rest)), np.ones(ids.shape, np.bool_)


def quiet(instance: Instance, *sublayers: str) -> dict[str, Array]:
    """Return weights with which these sublayers give 0 in every layer."""
    return silent(instance, *layers_of(instance, sublayers))


def plain_norms(instance: Instance) -> dict[str, Array]:
    """Return weights with which no norm scales or shifts a single feature."""
    own = {name: array for name, array in instance.weights.items() if "norm" in name}
    return {name: np.full_like(array, float(name.endswith("weight"))) for name, array in own.items()}


def changed(instance: Instance, inputs: tuple[Array, ...], which: int, size: int, *, skip: int = -1) -> Array:
    """Return how much each row t of the output changes if entry j of `which` is replaced by another id, as (j, t).

    `inputs` are of one text; `skip` is an id that is never written.
    """
    count = inputs[which].shape[1]
    copies = [np.repeat(each, count, axis=0) for each in inputs]
    each = np.arange(count)
    other = (copies[which][each, each] + 1) % size
    copies[which][each, each] = np.where(other == skip, (other + 1) % size, other)
    return np.asarray(np.abs(instance(*copies) - instance(*inputs)).max(axis=-1))


def check_rows(instance: Instance, draw: Draw, last: int) -> None:
    """Check the shape of what some texts give: `last` numbers for each position."""
    for batch, tokens in ((2, 7), (3, 2), (1, 1)):
        ids, segments = text(instance, draw, batch, tokens)
        out = instance(ids, segments)
        check_shape("output", out, (*ids.shape, last))
        check_finite("output", out)


def check_reads_all(instance: Instance, draw: Draw) -> None:
    """Check that each position reads the ids at every position."""
    sizes = instance.sizes
    inputs = text(instance, draw, 1, 6)
    check_moves("id", changed(instance, inputs, 0, sizes["vocab_size"], skip=sizes["pad_id"]))


def check_segments(instance: Instance, draw: Draw) -> None:
    """Check that every position depends on every segment, and that segments of 0 are those that are left out."""
    if instance.sizes["num_segments"] < 2:
        raise NotApplicable.from_sizes("its limits allow one segment only")
    ids, segments = text(instance, draw, 1, 6)
    check_moves("segment", changed(instance, (ids, segments), 1, instance.sizes["num_segments"]))
    if instance.subject.offers("segments-optional"):
        zeros = np.zeros_like(ids)
        check_close("output without segments", instance(ids), instance(ids, zeros), instance.subject.tolerance(2))
        if instance.subject.offers("masks"):
            real = np.arange(ids.shape[1])[None] < max(ids.shape[1] - 2, 1)
            got, want = (instance.call(ids, each, keys_mask(real)).out for each in (None, zeros))
            label = "output without segments, with a mask,"
            check_close(label, got[real], want[real], instance.subject.tolerance(2))


def check_another_order(instance: Instance, draw: Draw) -> None:
    """Check that permuted ids, of one segment, don't just give permuted rows."""
    ids, segments = text(instance, draw, 1, 6)
    if ids.shape[1] < 2:
        raise NotApplicable.from_sizes("its limits allow one position only")
    ids[0, :2] = np.delete(np.arange(instance.sizes["vocab_size"]), instance.sizes["pad_id"])[:2]
    order = draw.permutation(ids.shape[1])
    segments = np.zeros_like(segments)
    check_differs("the rows of the same ids in another order", instance(ids[:, order], segments),
                  instance(ids, segments)[:, order], at_least=1e-4)  # fmt: skip


def check_alone(instance: Instance, draw: Draw) -> None:
    """Check that a text gives the same alone as in a batch."""
    ids, segments = text(instance, draw, 3, 3)
    ids[1, 0] = next(n for n in range(instance.sizes["vocab_size"]) if n not in {ids[0, 0], instance.sizes["pad_id"]})
    together = instance(ids, segments)
    check_differs("the output for another text", together[0], together[1])
    for one in range(3):
        alone = instance(ids[one : one + 1], segments[one : one + 1])[0]
        check_close(f"output of text {one} alone", alone, together[one], instance.subject.tolerance(4))


def padded(instance: Instance, draw: Draw, *counts: int) -> tuple[tuple[Array, ...], Array]:
    """Return a batch whose texts end in so many positions of padding, with its mask if there is one; what is real."""
    ids, segments = text(instance, draw, len(counts), 7)
    if ids.shape[1] <= max(counts):
        raise NotApplicable.from_sizes("the declared limits allow only texts too short to pad")
    real = np.arange(ids.shape[1])[None] < ids.shape[1] - np.array(counts)[:, None]
    ids = np.where(real, ids, instance.sizes["pad_id"])
    return (ids, segments, *([keys_mask(real)] if instance.subject.offers("masks") else [])), real


def gapped(instance: Instance, draw: Draw) -> tuple[tuple[Array, ...], Array]:
    """Return a batch with a mask that hides ids in front, in the middle and none; what is real.

    The ids behind the mask are none of padding: only the mask tells what is hidden.
    """
    ids, segments = text(instance, draw, 3, 7)
    if ids.shape[1] < 3:
        raise NotApplicable.from_sizes("the declared limits allow only texts too short for a gap")
    real = np.ones(ids.shape, np.bool_)
    real[0, :2] = False
    real[1, 1:-1:2] = False
    return (ids, segments, keys_mask(real)), real


def check_real_positions(instance: Instance, draw: Draw) -> None:
    """Check that what the mask shows is read."""
    inputs, real = padded(instance, draw, 2)
    sizes = instance.sizes
    by = changed(instance, inputs, 0, sizes["vocab_size"], skip=sizes["pad_id"])
    check_moves("real position", by[real[0]][:, real[0]])


def check_padding(instance: Instance, draw: Draw) -> None:
    """Check that padding changes nothing at real positions: neither its amount nor, behind a mask, its ids."""
    inputs, real = padded(instance, draw, 1, 4, 0)
    together = instance(*inputs)
    for one, own in enumerate(real):
        alone = instance(*(each[one : one + 1, own] for each in inputs[:2]))[0]
        label = f"output of text {one}, {int((~own).sum())} positions of padding appended"
        check_close(label, together[one, own], alone, instance.subject.tolerance(4))
    if instance.subject.offers("masks"):
        inputs, real = padded(instance, draw, 2)
        by = changed(instance, inputs, 0, instance.sizes["vocab_size"])[~real[0]][:, real[0]]
        check_still("the change at real positions when padding changes", by, instance.subject.tolerance(4))


def check_padding_in_training(model: Subject, draw: Draw) -> None:
    """Check that ids behind the mask change nothing while there is dropout."""
    if all(model.offers(what) for what in ("masks", "dropout", "modes")):
        instance = build(model, dropout=0.5).scatter(draw)
        inputs, real = padded(instance, draw, 3, 1, 0)
        others = np.where(real, inputs[0], (inputs[0] + 1) % instance.sizes["vocab_size"])
        check_hidden_in_training(instance, inputs, (others, *inputs[1:]), real)


def check_longest(model: Subject, draw: Draw, **options: Any) -> None:
    """Check that a text may have max_len positions."""
    for longest in (7, 16):
        instance = build(model, max_len=longest, **options)
        limit = instance.sizes["max_len"]
        if instance.subject.tokens(limit) < limit:
            raise NotApplicable.from_sizes("the declared limits allow no text of max_len positions")
        ids, segments = text(instance, draw, 1, limit)
        check_finite(f"output for {ids.shape[1]} positions", instance(ids, segments))


def check_refused(instance: Instance, draw: Draw) -> None:
    """Check that ids and segments outside their tables raise."""
    sizes = instance.sizes
    for which, size in enumerate(("vocab_size", "num_segments")):
        if which and not instance.subject.variant.segments:
            continue
        for beyond in (0, 3):
            inputs = text(instance, draw, 2, 5)
            inputs[which][-1, -1] = sizes[size] + beyond
            what = ("an id", "a segment")[which]
            check_refuses(f"{what} {sizes[size] + beyond} where {size} = {sizes[size]}", partial(instance, *inputs))


def check_part(instance: Instance, draw: Draw, silenced: tuple[str, ...], label: str) -> None:
    """Compare with the definition while some sublayers give 0; with tables so small that ε shows, too."""
    own = dict(instance.weights)
    tables = ("embedding.weight", "segments.weight", "positions.weight")
    fixed = instance.subject.half or instance.subject.variant.positions == "sinusoidal"
    norms = [name for name in own if "norm" in name]
    for what, names in {
        "": (),
        "tables": () if fixed else tables,
        "norms": () if instance.subject.half else norms,
    }.items():
        small = {name: _SMALL * own[name] for name in names if name in own}
        if what and not small:
            continue
        instance.write({**own, **small, **quiet(instance, *silenced)})
        for batch, tokens in ((2, 7), (1, 1)):
            inputs = text(instance, draw, batch, tokens)
            sentence = f"{label}, {what} {_SMALL:g} times as large," if what else f"{label},"
            check_past(instance, draw, own, silenced, sentence, *inputs, tolerance=instance.subject.tolerance(6))


def check_past(
    instance: Instance, draw: Draw, own: Mapping[str, Array], silenced: tuple[str, ...], label: str, *inputs: Array,
    tolerance: float,
) -> None:  # fmt: skip
    """Compare with the definition while some sublayers give 0; where that fails, while attention gives its bias alone.

    Which sum or norm is wrong hardly shows past sublayers that give 0. With their `own` weights, and a bias in place of
    attention, each mistake has numbers of its own, whatever else is wrong in attention.
    """
    try:
        check_close(label, instance(*inputs), instance.expected(*inputs), tolerance)
    except ClauseFailure:
        if "attention" in silenced:
            ends = [f"{name}.out.bias" for name in layers_of(instance, ["attention"])]
            biases = {name: draw.values(*own[name].shape) for name in ends if name in own}
            networks = {name: array for name, array in own.items() if ".feed_forward." in name}
            instance.write({**networks, **biases})
            sentence = re.sub("(sublayers|attention) silent", "attention giving its bias alone", label)
            check_close(sentence, instance(*inputs), instance.expected(*inputs), tolerance)
        raise


def check_extreme_scores(instance: Instance, compute: Callable[[], Array]) -> None:
    """Check that scores whose exponentials overflow give finite numbers."""
    queries = [name for name in instance.weights if name.endswith("attention.q.weight")]
    if queries and not instance.subject.half:
        own = {name: instance.weights[name] for name in queries}
        instance.write({name: _OVERFLOWING * array for name, array in own.items()})
        check_finite(f"output, queries {_OVERFLOWING:g} times as large,", compute())
        instance.write(own)


def check_oracle(model: Subject, draw: Draw, depth: int, *, method: str | None = None) -> None:
    """Compare with the definition at several sizes, with and without padding."""
    for width, heads, layers in ((12, 3, 2), (8, 1, 1), (8, 4, 3)):
        instance = build(model, width, heads, num_layers=layers).randomize(draw)
        tolerance = model.tolerance(depth)
        for inputs in (text(instance, draw, 3, 6), text(instance, draw, 1, 1), text(instance, draw, 1, 9)):
            got, want = instance(*inputs, method=method), instance.expected(*inputs, method=method)
            check_close("output", got, want, tolerance)
        ragged, real = padded(instance, draw, 2, 0, 3)
        got, want = instance(*ragged, method=method), instance.expected(*ragged, method=method)
        check_close("output, with padding,", got if method else got[real], want if method else want[real], tolerance)
        if method is None and model.offers("masks") and ragged[0].shape[1] >= _GAPPED:
            between, shown = gapped(instance, draw)
            got, want = instance(*between)[shown], instance.expected(*between)[shown]
            check_close("output, with a mask that hides ids in front and in the middle,", got, want, tolerance)


def check_too_long(model: Subject, draw: Draw) -> None:
    """Check that a text with more positions than learned rows raises."""
    if model.variant.positions != "learned":
        return
    instance = build(model, max_len=7)
    limit = instance.sizes["max_len"]
    if limit < 2:  # a table of one row broadcasts
        return
    for beyond in (1, 3):
        ids = real_ids(draw, instance.sizes["vocab_size"], instance.sizes["pad_id"], 2, limit + beyond)
        action = partial(instance.unchecked, ids, np.zeros_like(ids))
        check_refuses(f"a text of {limit + beyond} positions where max_len = {limit}", action)


def check_layers_drop(instance: Instance, inputs: tuple[Array, ...], *entering: str) -> None:
    """Check that layers drop what their sublayers add: training varies where 0 enters them, which no dropout changes.

    `entering` begin the names of the weights that make 0 of what enters. Without biases, sublayers add 0 to 0.
    """
    zero = {name: np.zeros_like(array) for name, array in instance.weights.items() if name.startswith(entering)}
    if not zero or not any(".bias" in name for name in instance.weights if name.startswith("layers.0.")):
        return
    instance.write(zero)
    first, second = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
    check_differs("output in training mode, 0 enters the layers, dropout 0.5, another seed,", first, second)


def check_plain_in_training(plain: Instance, inputs: tuple[Array, ...]) -> None:
    """Check that without dropout no result of a call is another one in training mode."""
    for method in sorted(plain.subject.bound.methods):
        got, want = (plain.call(*inputs, method=method, mode=mode, seed=1).out for mode in ("train", "eval"))
        label = f"the result {method} in training mode, dropout 0,"
        check_close(label, got, want, plain.subject.tolerance(2))


def check_gradients_reach(instance: Instance, draw: Draw, inputs: tuple[Array, ...]) -> None:
    """Check that a gradient, not 0 for a matrix or an id, reaches each parameter, and layer 0 from each result.

    None reaches a pooler that no head reads.
    """
    bound = instance.subject.bound
    ids = np.array(inputs[0])
    ids[0, 0] = next(one for one in range(instance.sizes["vocab_size"]) if one != instance.sizes["pad_id"])
    inputs = (ids, *inputs[1:])  # the first real id is among them: `padding_idx` may take it for padding
    if instance.subject.offers("masks"):
        _check_reached_with_padding(instance, draw, inputs)
    total: dict[str, Array] = {p["name"]: np.zeros(p["shape"]) for p in instance.trainable}
    unread = _unread(bound)
    idle = {rule.target for rule in bound.rules or () if all(part.name in unread for part in rule.parts)}
    left = set(total) - unread_rows(instance, inputs) - idle
    for method in (None, *sorted(bound.methods)):
        shape = instance.call(*inputs, method=method).out.shape
        found = instance.vjp(*inputs, cotangent=draw.values(*shape), wrt=(), method=method).parameters
        own = {name: np.zeros(total[name].shape) if gradient is None else gradient for name, gradient in found.items()}
        for name, gradient in own.items():
            check_finite(f"the gradient of {name}", gradient)
            total[name] = total[name] + np.abs(gradient)
        left -= {name for name, gradient in found.items() if gradient is not None}
        if bound.rules:
            placed = bound.to_canonical(own, instance.sizes)
            first = [n for n in placed if n.startswith("layers.0.") and n.endswith("weight") and not np.any(placed[n])]
            check(f"no gradient reaches {', '.join(first)} from {method or 'the first result'}", not first)
    check(f"no gradient reaches {quoted(sorted(left))}", not left)
    if bound.rules:
        for name, gradient in bound.to_canonical(total, instance.sizes).items():
            if name.endswith("weight") and name not in unread:
                check(f"the gradient of {name} is 0", bool(np.abs(gradient).max() > 1e-9))
        rows = bound.to_canonical(total, instance.sizes)["embedding.weight"]
        cut = [int(one) for one in np.unique(inputs[0]) if not np.any(rows[one])]
        check(f"no gradient reaches the row of id {', '.join(map(str, cut))}, which the text has", not cut)


def _check_reached_with_padding(instance: Instance, draw: Draw, inputs: tuple[Array, ...]) -> None:
    """Check that a mask that hides the end of a text keeps finite gradients of all that it doesn't hide."""
    real = np.ones(inputs[0].shape, np.bool_)
    real[0, -1:] = inputs[0].shape[1] < 2
    inputs = (*inputs, keys_mask(real))
    cotangent = draw.values(*instance(*inputs).shape)
    found = instance.vjp(*inputs, cotangent=cotangent, wrt=()).parameters
    reached = {name: gradient for name, gradient in found.items() if gradient is not None}
    for name, gradient in reached.items():
        check_finite(f"the gradient of {name}, with padding,", gradient)
    if instance.subject.bound.rules:
        placed = instance.subject.bound.to_canonical(
            {p["name"]: reached.get(p["name"], np.zeros(p["shape"])) for p in instance.trainable}, instance.sizes
        )
        first = ("embedding", "segments.", "positions.", "layers.0.")
        cut = [n for n in placed if n.startswith(first) and n.endswith("weight") and not np.any(placed[n])]
        check(f"with padding, no gradient reaches {', '.join(cut)}", not cut)


def _unread(bound: Bound) -> set[str]:
    """Return the definition's parameters that change no result: a pooler's without the head for the next sentence."""
    reads = bound.component.name != "BertForPreTraining" or bound.variant.next_sentence_head
    return set() if reads else {"pooler.weight", "pooler.bias"}


def check_raw(instance: Instance, draw: Draw, compute: Callable[[], Array]) -> None:
    """Check that logits are neither probabilities nor their logarithms.

    Weights are drawn anew until a logit is below 0: the few classes of rows that are alike may all lie above it.
    """
    out = compute()
    for _ in range(_WEIGHTS):
        if (out < 0).any():
            break
        instance.scatter(draw)
        out = compute()
    check("every row sums to 1: these are probabilities", not np.allclose(out.sum(axis=-1), 1.0, atol=1e-4))
    total = np.exp(np.minimum(out, 50.0)).sum(axis=-1)
    check("the exponentials of every row sum to 1: these are logarithms of probabilities",
          not np.allclose(total, 1.0, atol=1e-4))  # fmt: skip
    check("no logit is below 0", bool((out < 0).any()))
