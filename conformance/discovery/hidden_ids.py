"""What the masks of an encoder-decoder and its parts mean, seen from what they hide: no variant has to be known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.masks import NAMES
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.probing.mask_trial import mask_forms, with_masks
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["masks_that_hide", "masks_that_hide_rows"]

_KINDS = ("bool", "int", "float")
_USUAL = {"kind": "bool", "true": "attend", "shape": ""}
_SAME = 1e-6


def masks_that_hide(name: str, table: Mapping[str, Any], bench: Bench) -> dict[str, dict[str, str]]:
    """Return the masks to declare for a model: nothing if they hide as they are, or if no form does."""
    return _masks(name, table, bench, _ignores_what_is_hidden)


def masks_that_hide_rows(name: str, table: Mapping[str, Any], bench: Bench) -> dict[str, dict[str, str]]:
    """Return the masks to declare for a part, as for a model."""
    return _masks(name, table, bench, _ignores_hidden_rows)


def _masks(
    name: str, table: Mapping[str, Any], bench: Bench, ignores: Callable[[Instance], bool]
) -> dict[str, dict[str, str]]:
    used = bench.subject(name, table).bound.call.names()
    names = [mask for mask in NAMES if mask in used and "padding" not in mask]
    forms = ({"kind": kind, "true": true, "shape": shape}
             for shape, true, kind in product(("", "B T"), ("attend", "hide"), _KINDS))  # fmt: skip
    for masks in _declared(names, forms):
        if _hides(name, {**table, "masks": masks} if masks else table, bench, ignores):
            return masks
    return {}


def _declared(names: Sequence[str], forms: Iterator[dict[str, str]]) -> Iterator[dict[str, dict[str, str]]]:
    for form in forms:
        said = {key: value for key, value in form.items() if value != _USUAL[key]}
        yield {name: dict(said) for name in names} if said else {}


def _hides(name: str, table: Mapping[str, Any], bench: Bench, ignores: Callable[[Instance], bool]) -> bool:
    """Whether what is hidden has no influence on the result, and other things have some."""
    try:
        instance = bench.subject(name, table).build(**bench.sizes).randomize(Draw(0, "adapt ids"))
        instance = instance.with_bound(replace(instance.subject.bound, masks=mask_forms(instance)))
        return ignores(instance)
    except WorkerLost:
        raise
    except TROUBLE:
        return False


def _ignores_what_is_hidden(instance: Instance) -> bool:
    src, tgt, src_mask, tgt_mask = instance.example_inputs(Draw(0, "adapt ids"))
    other_src, other_tgt, *_ = instance.example_inputs(Draw(1, "adapt ids"))
    hidden = src_mask.copy()
    hidden[..., -1] = False
    out = instance(src, tgt, hidden, tgt_mask)
    last = instance(_with(src, other_src, -1), tgt, hidden, tgt_mask)
    first = instance(_with(src, other_src, 0), tgt, hidden, tgt_mask)
    later = instance(src, _with(tgt, other_tgt, -1), hidden, tgt_mask)
    return _same(out, last) and not _same(out, first) and _same(out[:, :-1], later[:, :-1])


def _ignores_hidden_rows(instance: Instance) -> bool:
    """Whether hidden keys leave the rows before the last as they are, and the first one does not."""
    names = instance.subject.bound.component.inputs
    inputs = dict(zip(names, with_masks(instance, Draw(0, "adapt rows")), strict=True))
    other = dict(zip(names, with_masks(instance, Draw(1, "adapt rows")), strict=True))
    read: list[str] = [name for name in ("key", "value") if name in inputs]
    read = read or [name for name in ("x", "memory") if name in inputs]
    out = instance(*inputs.values())
    for name in [read] if "key" in read else [[name] for name in read]:
        last, first = (
            {n: _row(a, other[n], place) if n in name else a for n, a in inputs.items()} for place in (-1, 0)
        )
        if not _same(out[:, :-1], instance(*last.values())[:, :-1]) or _same(
            out[:, 1:], instance(*first.values())[:, 1:]
        ):
            return False
    return True


def _row(array: Array, other: Array, place: int) -> Array:
    changed = array.copy()
    changed[:, place] = other[:, place]
    return changed


def _with(ids: Array, others: Array, place: int) -> Array:
    """Return ids with another one at this place, in all sequences."""
    changed = ids.copy()
    changed[:, place] = np.where(ids[:, place] == others[:, place], ids[:, place - 1], others[:, place])
    return changed


def _same(one: Array, other: Array) -> bool:
    return bool(np.isfinite(one).all() and np.allclose(one, other, rtol=_SAME, atol=_SAME))
