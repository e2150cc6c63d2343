"""One set of inputs for any component: ids, vectors, or queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.spec.arrays import Array

__all__ = ["example_inputs", "real_ids"]


def example_inputs(
    bound: Bound, sizes: Mapping[str, Any], draw: Draw, *, batch: int = 2, tokens: int = 5, further: int = 2
) -> tuple[Array, ...]:
    """Return inputs for these sizes: ids (B, T), x (B, T, D), or q (B, T, 4), k (B, T + further, 4), v (…, 7).

    A source or a memory has T + further positions, too.
    """
    longest = sizes.get("block_size") or sizes.get("max_len") or tokens
    length = min(nearest_allowed("tokens", tokens, bound.limits), longest)
    names = bound.component.inputs
    if "images" in names:
        extent = sizes["image_size"]
        return (draw.values(batch, sizes["channels"], extent, extent),)
    if "segments" in names:
        ids = real_ids(draw, sizes["vocab_size"], sizes["pad_id"], batch, length)
        return ids, draw.ids(sizes["num_segments"], batch, length)
    if bound.component.several:
        return _several(bound, sizes, draw, batch, length, further)
    if "ids" in names:
        return (draw.ids(max(sizes["vocab_size"], 1), batch, length),)
    if "x" in names:
        return (draw.values(batch, length, max(sizes["d_model"], 0)),)
    leading = bound.leading(batch)
    return (
        draw.values(*leading, length, 4), draw.values(*leading, length + further, 4),
        draw.values(*leading, length + further, 7),
    )  # fmt: skip


def _several(
    bound: Bound, sizes: Mapping[str, Any], draw: Draw, batch: int, length: int, further: int
) -> tuple[Array, ...]:
    """Return inputs without masks; of a model, ids without padding, and their masks."""
    from conformkit.spec.padding import padding_mask, target_mask  # noqa: PLC0415 - core does without

    names, longer = bound.component.inputs, nearest_allowed("tokens", length + further, bound.limits)
    if "src" in names:
        longer = min(longer, sizes["max_len"])
        src = real_ids(draw, sizes["src_vocab_size"], sizes["pad_id"], batch, longer)
        tgt = real_ids(draw, sizes["tgt_vocab_size"], sizes["pad_id"], batch, length)
        return src, tgt, padding_mask(src, sizes["pad_id"]), target_mask(tgt, sizes["pad_id"])
    if "ids" in names:
        return (draw.ids(sizes["vocab_size"], batch, length),)
    extents = {"x": length, "query": length, "memory": longer, "key": longer, "value": longer}
    found = {name: draw.values(batch, extents[name], sizes["d_model"]) for name in names if name in extents}
    if "value" in found and not bound.offers.get("own-values", False):
        found["value"] = found["key"]
    return tuple(found.values())


def real_ids(draw: Draw, vocab_size: int, pad_id: int, *shape: int) -> Array:
    """Return ids (…) without padding."""
    return np.asarray((pad_id + 1 + draw.ids(max(vocab_size - 1, 1), *shape)) % max(vocab_size, 1))
