"""Which output row depends on which input row, for components with several inputs."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import (
    Kind,
    check,
    check_close,
    check_equal,
    check_finite,
    check_repeated,
    check_zero,
    quoted,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rows_of_ids import unread_rows
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = [
    "causal", "check_all_arrive", "check_drops_nothing", "check_hidden_in_training", "check_kept", "check_moves",
    "check_still", "keys_mask", "moved", "repeated",
]  # fmt: skip


_MOVED = 1e-6
"""An output that changes by more than this depends on what was changed."""


def keys_mask(real: Array) -> Array:
    """Return the mask (B, 1, 1, T) that hides all but the real positions (B, T)."""
    return np.asarray(real, np.bool_)[:, None, None, :]


def causal(x: Array, real: Array | None = None) -> Array:
    """Return the mask (B, 1, T, T) for x (B, T, …) that hides later positions and padding (`real` is (B, T))."""
    own = keys_mask(np.ones(x.shape[:2]) if real is None else real)
    return own & np.tri(x.shape[1], dtype=np.bool_)


def repeated(inputs: tuple[Array | None, ...], copies: int) -> list[Array | None]:
    """Return inputs of one sequence, as a batch of copies."""
    return [None if each is None else np.repeat(each, copies, axis=0) for each in inputs]


def moved(
    instance: Instance, draw: Draw, inputs: tuple[Array | None, ...], *which: int, method: str | None = None
) -> Array:
    """Return how much each output row t changes when row j of the inputs `which` changes, as (j, t).

    `inputs` are of one sequence. Rows of features are redrawn, ids are replaced by other ids from the same draw.
    """
    first = inputs[which[0]]
    assert first is not None
    copies = repeated(inputs, first.shape[1])
    for number in which:
        changed = copies[number]
        assert changed is not None
        each = np.arange(changed.shape[1])
        changed[each, each] += 3.0 * draw.values(*changed.shape[1:])
    before = instance.call(*inputs, method=method).out
    after = instance.call(*copies, method=method).out
    return np.asarray(np.abs(after - before).max(axis=-1))


def check_moves(label: str, by: Array) -> None:
    """Check that every output row depends on every row of the input; `by` is the result of `moved`."""
    row, output = np.unravel_index(int(by.argmin()), by.shape)
    seen = by > _MOVED
    sentence = f"output {output} does not depend on {label} {row}"
    check(f"{sentence}{_which(seen)}", bool(seen.all()), kind=Kind.NO_EFFECT)


def _which(seen: Array) -> str:
    """Return which rows of the input (j, t) the outputs depend on, if that is a pattern with a usual cause."""
    places = np.arange(max(seen.shape))
    one, other = places[: len(seen), None], places[None, : seen.shape[1]]
    square = seen.shape[0] == seen.shape[1] > 1
    known = {
        ": each depends on what stands at its own place and before it, as behind a causal mask": one <= other,
        ": each depends on what stands at its own place and after it, as behind a causal mask that is transposed": (
            one >= other
        ),
        ": each depends on its own place alone": one == other,
        ": each depends on other places alone, not on its own": one != other,
    }
    return next((words for words, pattern in known.items() if square and (seen == pattern).all()), "")


def check_still(label: str, by: Array, tolerance: float) -> None:
    """Check that none of these outputs changes."""
    check_zero(label, by, at_most=10 * tolerance)


def check_hidden_in_training(
    instance: Instance, inputs: tuple[Array | None, ...], other: tuple[Array | None, ...], real: Array
) -> None:
    """Check that dropout shows nothing of what a mask hides: the real rows, with equal draws, are those of `other`.

    `other` differs from `inputs` where `real` (B, T) is false. Dropped scores become 0, masked ones too.
    Nothing follows where equal calls differ: what is drawn does not follow the seed.
    """
    first, again, after = (instance(*each, mode="train", seed=1) for each in (inputs, inputs, other))
    if np.array_equal(first, again, equal_nan=True):
        label = "output at real positions in training mode, dropout 0.5, other ids or rows behind the mask,"
        check_close(label, after[real], first[real], instance.subject.tolerance(4))


def check_all_arrive(instance: Instance, draw: Draw, inputs: tuple[Array | None, ...]) -> None:
    """Check that a gradient, finite and not 0, arrives at every input of features and every parameter.

    A bias of keys rightly gets 0: the softmax cancels it.
    """
    names = instance.subject.bound.component.inputs
    taken = instance.subject.bound.call.names()
    wrt = [n for n, a in zip(names, inputs, strict=False) if n in taken and a is not None and a.dtype.kind == "f"]
    found = instance.vjp(*inputs, cotangent=draw.values(*instance(*inputs).shape), wrt=wrt)
    unread = unread_rows(instance, inputs)
    left = [n for n, gradient in {**found.inputs, **found.parameters}.items() if gradient is None and n not in unread]
    check(f"no gradient reaches {quoted(left)}", not left)
    for name, gradient in found.inputs.items():
        check_finite(f"the gradient of {name}", np.asarray(gradient))
        check(f"the gradient of {name} is 0", bool(np.any(gradient)))
    shapes = {p["name"]: p["shape"] for p in instance.trainable}
    reached = {n: np.zeros(shapes[n]) if gradient is None else gradient for n, gradient in found.parameters.items()}
    if instance.subject.bound.rules:
        for name, gradient in instance.subject.bound.to_canonical(reached, instance.sizes).items():
            if name.endswith("weight"):
                check(f"the gradient of {name} is 0", bool(np.abs(gradient).max() > 1e-9))


def check_drops_nothing(instance: Instance, plain: Instance, inputs: tuple[Array | None, ...]) -> None:
    """Check that an instance with dropout gives in eval mode what one without gives, call after call."""
    plain.write_raw(instance.read_raw())
    before = instance.call(*inputs, seed=1).out
    check_repeated("output in a second call", instance.call(*inputs, seed=2).out, before)
    tolerance = instance.subject.tolerance(4)
    check_close("output, compared with that of dropout 0,", before, plain.call(*inputs).out, tolerance)


def check_kept(instance: Instance, inputs: tuple[Array | None, ...]) -> None:
    """Check that a call, in training mode too, leaves its arguments as they were."""
    names = instance.subject.bound.component.inputs
    for mode in ("eval", "train"):
        after = instance.call(*inputs, echo=True, mode=mode).arguments
        for name, given in zip(names, inputs, strict=False):
            if given is not None and name in after and after[name].shape == given.shape and given.dtype.kind != "b":
                check_equal(f"{name} after the call", np.asarray(after[name], given.dtype), given)
