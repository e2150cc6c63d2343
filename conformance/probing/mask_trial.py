"""Which shape of masks an encoder-decoder's component takes, where nothing is declared: the first that it takes at all.

Only shapes are tried: who reads True the other way round, or hides nothing, is wrong unless conform.toml says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.masks import MASKS
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["settle_causality", "settle_masks", "settle_methods"]


_OF_KEYS = ("", "B 1 T", "B T T", "B H T T", "B T")
_OF_PAIRS = ("", "B T T", "B H T T", "T T")


def settle_masks(instance: Instance) -> None:
    """Find the shapes in which the masks of a call are taken; the contract's where none is."""
    bound = instance.subject.bound
    names = [name for name in bound.component.inputs if name in MASKS and name in bound.call.names()]
    open_ = [name for name in names if not bound.masks[name].shape]
    if not open_:
        return
    inputs = with_masks(instance, Draw(0, "masks"))
    own = dict(bound.masks)
    for shapes in _combinations(open_):
        bound.masks |= {name: replace(own[name], shape=shape) for name, shape in shapes.items()}
        if "src_mask" in shapes:
            bound.masks["memory_mask"] = replace(own["memory_mask"], shape=shapes["src_mask"])
        try:
            instance(*inputs)
        except (ImplementationFailure, ClauseFailure):
            continue
        return
    bound.masks = own


def settle_causality(instance: Instance) -> None:
    """Find out whether a decoder that is handed nothing about later positions leaves them out by itself."""
    bound = instance.subject.bound
    names = bound.component.inputs
    if "memory" not in names or "tgt_mask" not in names or {"tgt_mask", "causality"} & bound.call.names():
        return
    draw = Draw(0, "causality")
    x, memory = instance.example_inputs(draw)
    other = x.copy()
    other[:, -1] = draw.values(*x[:, -1].shape)
    before, after = (instance(inputs, memory)[:, :-1] for inputs in (x, other))
    if np.allclose(before, after, rtol=1e-6, atol=1e-9):
        bound.causal = "always"


def settle_methods(instance: Instance) -> None:
    """Leave out methods of the contract's names that give something else than the contract's: features, one row."""
    bound = instance.subject.bound
    src, tgt, src_mask, tgt_mask = instance.example_inputs(Draw(0, "methods"))
    memory = Draw(0, "memory").values(*src.shape, instance.sizes["d_model"])
    inputs = {"encode": (src, src_mask), "decode": (tgt, memory, tgt_mask, src_mask)}
    for name in sorted(bound.methods.keys() & inputs.keys()):
        try:
            instance.call(*inputs[name], method=name)
        except ImplementationFailure:
            continue  # for clauses to find
        except ClauseFailure as other:
            own = bound.methods.pop(name).name
            bound.offers[name] = False
            bound.notes.append(f"{own} is not judged as the contract's {name}: {other.message}")


def with_masks(instance: Instance, draw: Draw) -> tuple[Array, ...]:
    """Return example inputs, and masks that hide little: the last key of every sequence, or what comes later."""
    found = instance.example_inputs(draw)
    names = instance.subject.bound.component.inputs
    if len(found) == len(names):
        return found
    arrays = dict(zip(names, found, strict=False))
    keys = {"mask": arrays.get("key", found[0]), "memory_mask": arrays.get("memory", found[0]), "tgt_mask": found[0]}
    for name in names[len(found) :]:
        batch, tokens = keys[name].shape[:2]
        rows = tokens if name == "tgt_mask" else 1
        seen = np.tri(tokens, dtype=np.bool_) if rows > 1 else np.arange(tokens)[None] < max(tokens - 1, 1)
        arrays[name] = np.repeat(seen[None, None], batch, axis=0)
    return tuple(arrays.values())


def _combinations(names: list[str]) -> Iterator[dict[str, str]]:
    kinds = [_OF_PAIRS if name == "tgt_mask" else _OF_KEYS for name in names]
    for shapes in itertools.product(*kinds):
        yield dict(zip(names, shapes, strict=True))
