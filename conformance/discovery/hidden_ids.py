"""What the masks of a whole encoder-decoder mean, seen from what they hide: no variant of the definition is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.masks import NAMES
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.probing.mask_trial import mask_forms
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["masks_that_hide"]

_KINDS = ("bool", "int", "float")
_USUAL = {"kind": "bool", "true": "attend", "shape": ""}
_SAME = 1e-6


def masks_that_hide(name: str, table: Mapping[str, Any], bench: Bench) -> dict[str, dict[str, str]]:
    """Return the masks to declare for a model: nothing if they hide as they are, or if no form does."""
    used = bench.subject(name, table).bound.call.names()
    names = [mask for mask in NAMES if mask in used and "padding" not in mask]
    forms = ({"kind": kind, "true": true, "shape": shape}
             for shape, true, kind in product(("", "B T"), ("attend", "hide"), _KINDS))  # fmt: skip
    for masks in _declared(names, forms):
        if _hides(name, {**table, "masks": masks} if masks else table, bench):
            return masks
    return {}


def _declared(names: Sequence[str], forms: Iterator[dict[str, str]]) -> Iterator[dict[str, dict[str, str]]]:
    for form in forms:
        said = {key: value for key, value in form.items() if value != _USUAL[key]}
        yield {name: dict(said) for name in names} if said else {}


def _hides(name: str, table: Mapping[str, Any], bench: Bench) -> bool:
    """Whether hidden ids have no influence on the logits, and others have some."""
    try:
        instance = bench.subject(name, table).build(**bench.sizes).randomize(Draw(0, "adapt ids"))
        instance = instance.with_bound(replace(instance.subject.bound, masks=mask_forms(instance)))
        return _ignores_what_is_hidden(instance)
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


def _with(ids: Array, others: Array, place: int) -> Array:
    """Return ids with another one at this place, in all sequences."""
    changed = ids.copy()
    changed[:, place] = np.where(ids[:, place] == others[:, place], ids[:, place - 1], others[:, place])
    return changed


def _same(one: Array, other: Array) -> bool:
    return bool(np.isfinite(one).all() and np.allclose(one, other, rtol=_SAME, atol=_SAME))
