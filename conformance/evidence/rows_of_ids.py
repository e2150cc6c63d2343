"""Which of an implementation's parameters have a row for each id or position, or are such a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from conformkit.conformance.binding.patterns import shapes, to_canonical
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["parameters_of", "rows_of_ids", "single_rows", "unread_rows"]

_TABLES: Mapping[str, Sequence[str]] = {
    "ids": ("embedding.weight",),
    "src": ("embedding.weight", "src_embedding.weight"),
    "tgt": ("embedding.weight", "tgt_embedding.weight"),
}
"""Where the rows of the ids of an input are."""


def parameters_of(instance: Instance, canonical: str) -> list[str]:
    """Return the names of the parameters in which a canonical one lies, in the order of its rows; none if unbound."""
    rules = [rule for rule in instance.subject.bound.rules or () if canonical in {part.name for part in rule.parts}]
    return list(shapes(rules, instance.canonical)) if canonical in instance.canonical else []


def single_rows(instance: Instance) -> list[list[str]]:
    """Return the names of parameters that are one row of a table each, by table: a call may use only some of them.

    So it may of several experts, each of which has arrays of its own.
    """
    rules = [rule for rule in instance.subject.bound.rules or () if rule.item in {"t", "e"}]
    return [list(shapes([rule], instance.canonical)) for rule in rules]


def unread_rows(instance: Instance, inputs: Sequence[Array | None]) -> frozenset[str]:
    """Return the names of parameters that are the row of one id each, of which the inputs have none."""
    read: dict[str, set[int]] = defaultdict(set)
    for name, array in zip(instance.subject.bound.component.inputs, inputs, strict=False):
        for table in _TABLES.get(name, ()):
            read[table] |= set() if array is None else set(array.ravel().tolist())
    found: set[str] = set()
    for table, ids in read.items():
        rows = parameters_of(instance, table)
        if len(rows) > 1 and len(rows) == instance.canonical[table].shape[0]:
            found |= {name for row, name in enumerate(rows) if row not in ids}
    return frozenset(found)


def rows_of_ids(instance: Instance, gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return the gradients of parameters with a row for each id, (V, …); of one parameter an id, all together."""
    size = instance.sizes["vocab_size"]
    found = {
        name: np.moveaxis(gradient, gradient.shape.index(size), 0)
        for name, gradient in gradients.items()
        if size in gradient.shape
    }
    for canonical in ("embedding.weight", "head.weight"):
        own = parameters_of(instance, canonical)
        if len(own) == size and all(name in gradients for name in own):
            found[f"{own[0]} … {own[-1]}"] = np.stack([gradients[name] for name in own])
    return _with_others(instance, gradients) | found


def _with_others(instance: Instance, gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return those of the embeddings where one parameter holds them with other rows, such as those of positions."""
    rules = [rule for rule in instance.subject.bound.rules or () if len(rule.parts) > 1]
    held = next((r for r in rules if "embedding.weight" in [part.name for part in r.parts]), None)
    if held is None or held.target not in gradients:
        return {}
    apart = to_canonical([held], gradients, instance.canonical, instance.sizes)
    return {held.target: apart["embedding.weight"]}
