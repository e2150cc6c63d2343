"""Which row of an output moves with which row of an input, where a component has several inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check, check_zero
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.subject import Instance

__all__ = ["causal", "check_moves", "check_still", "keys_mask", "moved", "repeated"]

Array = npt.NDArray[Any]


def keys_mask(real: Array) -> Array:
    """Return the mask (B, 1, 1, T) that hides all but the real positions (B, T)."""
    return np.asarray(real, np.bool_)[:, None, None, :]


def causal(tokens: int, real: Array | None = None) -> Array:
    """Return the mask (1 or B, 1, T, T) that hides what comes later, and all but the real positions (B, T)."""
    mask = np.tri(tokens, dtype=np.bool_)[None, None]
    return mask if real is None else mask & keys_mask(real)


def repeated(inputs: tuple[Array | None, ...], copies: int) -> list[Array | None]:
    """Return inputs of one sequence, as a batch of copies."""
    return [None if each is None else np.repeat(each, copies, axis=0) for each in inputs]


def moved(
    instance: Instance, draw: Draw, inputs: tuple[Array | None, ...], *which: int, method: str | None = None
) -> Array:
    """Return by how much each output row t moves when row j of the inputs `which` changes, as (j, t).

    `inputs` are of one sequence. Rows of features get others, ids get other ids that are drawn as the rest is.
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
    """Check that every output row moves with every row of the input; `by` as `moved` gives it."""
    row, output = np.unravel_index(int(by.argmin()), by.shape)
    check(f"output {output} does not depend on {label} {row}", bool((by > 1e-6).all()))


def check_still(label: str, by: Array, tolerance: float) -> None:
    """Check that none of these outputs moves."""
    check_zero(label, by, at_most=10 * tolerance)
