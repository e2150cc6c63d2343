"""Blocks, and whole models, that hold no number of the checkpoint: nothing was loaded into them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from conformkit.conformance.apps.port.mistake import Right
from conformkit.conformance.apps.port.numbers import constant, unrelated
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array

__all__ = ["unloaded"]

_SHOWN = 6


def unloaded(
    right: Right, got: Callable[[str], Array], wrong: Collection[str], there: Sequence[str]
) -> tuple[list[NamedMistake], set[str]]:
    """Return what was left as it was drawn, and the parameters that this explains.

    Matrices without any relation to the right ones, vectors of one number: in all of a block, or of the model. One
    parameter alone is said as that; where there are no vectors, nothing tells it from another order of layers.
    """
    blocks: dict[int, list[str]] = {}
    for name in there:
        if folded(name) != name:
            blocks.setdefault(int(name.split(".")[1]), []).append(name)
    drawn = {name for name in there if _as_drawn(got(name), right.ours(name), wrong=name in wrong)}
    whole = [n for n, names in blocks.items() if drawn.issuperset(names) and any(_is_vector(x, right) for x in names)]
    if not whole:
        return [], set()
    if drawn == set(there):
        sentence, where = "no number of the file is that of the checkpoint: left as drawn, not loaded?", list(there)
    else:
        words = f"block{'s' if len(whole) > 1 else ''} {', '.join(map(str, whole))}"
        sentence = f"{words}: no number is that of the checkpoint: left as drawn, not loaded?"
        where = [name for number in whole for name in blocks[number]]
    found = [name for name in where if name in wrong]
    return [NamedMistake("not-loaded", sentence, "likely", tuple(found[:_SHOWN]))], set(found)


def _is_vector(name: str, right: Right) -> bool:
    return len(right.parameters[name].shape) == 1


def _as_drawn(got: Array, want: Array, *, wrong: bool) -> bool:
    """Whether an array may be one that nothing was loaded into: a right one only if it holds one number."""
    if constant(got) or not wrong or got.ndim == 1 or not np.isfinite(got).all():
        return constant(got)
    return unrelated(got, want) and not np.array_equal(np.sort(got, axis=None), np.sort(want, axis=None))
