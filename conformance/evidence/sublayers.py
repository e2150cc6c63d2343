"""Layers and models, also with some sublayers silent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_differs, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = [
    "build", "check_definition", "check_in_turn", "check_rate_used", "check_same_everywhere", "check_stream_kept",
    "check_varies", "layers_of", "share_dropped", "silent", "silent_attention", "with_silent",
]  # fmt: skip


_EQUAL = 1e-6
"""Relative difference below which two entries of a row are taken for equal."""
_DROPPED = 0.64
"""Share of equal entries: half of 1,500 are dropped by chance, and this many once in 10²⁵ right models."""


def build(layer: Subject, width: int = 12, heads: int = 3, hidden: int = 20, **options: Any) -> Instance:
    """Build a layer or a stack of small sizes; failures name them."""
    instance = layer.build(d_model=width, num_heads=heads, d_ff=hidden, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads", "d_ff")))
    return instance


def check_definition(layer: Subject, draw: Draw) -> None:
    """Check that a layer is that of its definition, for usual, faint and large inputs."""
    for width, heads, hidden in each_of("width, heads, hidden", [(12, 3, 20), (8, 2, 9)]):
        instance = layer.build(d_model=width, num_heads=heads, d_ff=hidden).randomize(draw)
        for tokens, scale in ((5, 1.0), (1, 0.01), (3, 30.0)):
            x = draw.values(2, layer.tokens(tokens), instance.sizes["d_model"], scale=scale)
            check_close("output", instance(x), instance.expected(x), layer.tolerance(3))


def silent(instance: Instance, *sublayers: str) -> dict[str, Array]:
    """Return weights with which these sublayers give 0; `layers.1.attention` is one of a stack."""
    last = "out" if instance.subject.variant.output_projection else "v"
    found: dict[str, Array] = {}
    for name in sublayers:
        found |= zeros(instance, f"{name}.{'down' if name.endswith('feed_forward') else last}.")
    return found


def layers_of(instance: Instance, sublayers: Sequence[str]) -> list[str]:
    """Return the names of these sublayers in every layer of a stack."""
    return [f"layers.{layer}.{name}" for layer in range(instance.sizes["num_layers"]) for name in sublayers]


def with_silent(instance: Instance, sublayers: Sequence[str], *inputs: Array | None) -> Array:
    """Return the output with some sublayers silenced, and restore their weights."""
    own = instance.weights
    y = instance.write(silent(instance, *sublayers))(*inputs)
    instance.write(own)
    return y


def silent_attention(instance: Instance, *, but: int = -1) -> dict[str, Array]:
    """Return weights with which attention gives 0 in all of a model's blocks but one."""
    blocks = (block for block in range(instance.sizes["num_layers"]) if block != but)
    return silent(instance, *(f"blocks.{block}.attention" for block in blocks))


def check_same_everywhere(model: Subject, draw: Draw) -> None:
    """Check that with silent attention a model's logits of an id are the same at every position."""
    instance = model.build().randomize(draw)
    instance.write(silent_attention(instance))
    length = min(6, instance.sizes["block_size"])
    logits = instance(np.repeat(draw.ids(instance.sizes["vocab_size"], 3, 1), length, axis=1))
    want = np.broadcast_to(logits[:, :1], logits.shape)
    check_close("logits of one id at every position", logits, want, model.tolerance(5))


def check_in_turn(instance: Instance, sublayers: Sequence[str], x: Array, *others: Array | None) -> None:
    """Check that a pre-norm layer equals its sublayers applied one after the other."""
    want = x
    for name in sublayers:
        want = with_silent(instance, [other for other in sublayers if other != name], want, *others)
    tolerance = instance.subject.tolerance(len(sublayers))
    check_close("output, compared with its sublayers in turn,", instance(x, *others), want, tolerance)


def check_varies(instance: Instance, plain: Instance, inputs: tuple[Array | None, ...]) -> None:
    """Check that dropout shows in training mode, and that a rate of 0 drops nothing."""
    first, second = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
    check_differs("output in training mode, dropout 0.5, another seed,", first, second)
    got, want = plain(*inputs, mode="train", seed=1), plain(*inputs)
    check_close("output in training mode, dropout 0", got, want, plain.subject.tolerance(2))


def check_stream_kept(rows: Array) -> None:
    """Check that of rows (N, D), seen past silent sublayers, dropout 0.5 took entries only once, at the beginning.

    What is dropped is equal within a row, also behind a norm; what is left has values of its own. Dropped once more, a
    few of them would be left.
    """
    share = share_dropped(rows)
    check(f"{share:.0%} of a row's entries are dropped in training mode, expected about half: those of the embeddings",
          share < _DROPPED)  # fmt: skip


def share_dropped(rows: Array) -> float:
    """Return the share of entries of rows (N, D) that are equal within their row: those that were dropped."""
    order = np.sort(rows, axis=-1)
    equal = np.diff(order, axis=-1) <= _EQUAL * np.abs(order).max(axis=-1, keepdims=True)  # (N, D-1)
    alike = np.pad(equal, ((0, 0), (1, 0))) | np.pad(equal, ((0, 0), (0, 1)))  # (N, D)
    return float(alike.mean())


def check_rate_used(instance: Instance, plain: Instance, inputs: tuple[Array | None, ...]) -> None:
    """Check the same of a rate that is an argument of its own; an entry of settings may be for another part."""
    if not instance.subject.takes("dropout"):
        raise NotApplicable("it takes no dropout rate as an argument of its own")
    check_varies(instance, plain, inputs)


def check_each_varies(instance: Instance, sublayers: Sequence[str], inputs: tuple[Array | None, ...]) -> None:
    """Check that dropout shows in each sublayer."""
    own = dict(instance.weights)
    for name in sublayers:
        instance.write({**own, **silent(instance, *(other for other in sublayers if other != name))})
        first, second = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
        check_differs(f"output in training mode, {name} alone, dropout 0.5, another seed,", first, second)
