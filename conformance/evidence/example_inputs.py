"""One set of inputs for an instance, whatever the component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.draws import Draw

if TYPE_CHECKING:
    from conformkit.conformance.subject import Instance, Subject

__all__ = ["example", "example_inputs", "real_ids"]

Array = npt.NDArray[Any]


def example(
    subject: Subject, draw: Draw, *, batch: int = 2, tokens: int = 5, **wanted: Any
) -> tuple[Instance, tuple[Array, ...]]:
    """Return an instance with random weights and one set of inputs for it, whatever the component."""
    instance = subject.build(**wanted).scatter(draw)
    return instance, example_inputs(instance, draw, batch=batch, tokens=tokens)


def example_inputs(
    instance: Instance, draw: Draw, *, batch: int = 2, tokens: int = 5, further: int = 2
) -> tuple[Array, ...]:
    """Return inputs for an instance: ids (B, T), x (B, T, D), or q (B, T, 4), k (B, T + further, 4), v (…, 7)."""
    longest = instance.sizes.get("block_size") or instance.sizes.get("max_len") or tokens
    length = min(instance.subject.tokens(tokens), longest)
    names = instance.subject.bound.component.inputs
    if instance.subject.bound.component.profile == "seq2seq":
        return _several(instance, draw, names, batch, length)
    if "ids" in names:
        return (draw.ids(max(instance.sizes["vocab_size"], 1), batch, length),)
    if "x" in names:
        return (draw.values(batch, length, max(instance.sizes["d_model"], 0)),)
    leading = instance.subject.bound.leading(batch)
    return (
        draw.values(*leading, length, 4), draw.values(*leading, length + further, 4),
        draw.values(*leading, length + further, 7),
    )  # fmt: skip


def _several(instance: Instance, draw: Draw, names: Sequence[str], batch: int, length: int) -> tuple[Array, ...]:
    """Return inputs without masks; of a model, ids without padding, and masks that say so."""
    from conformkit.spec.padding import padding_mask, target_mask  # noqa: PLC0415 - core does without

    sizes, longer = instance.sizes, instance.subject.tokens(length + 2)
    if "src" in names:
        longer = min(longer, sizes["max_len"])
        src = real_ids(draw, sizes["src_vocab_size"], sizes["pad_id"], batch, longer)
        tgt = real_ids(draw, sizes["tgt_vocab_size"], sizes["pad_id"], batch, length)
        return src, tgt, padding_mask(src, sizes["pad_id"]), target_mask(tgt, sizes["pad_id"])
    if "ids" in names:
        return (draw.ids(sizes["vocab_size"], batch, length),)
    extents = {"x": length, "query": length, "memory": longer, "key": longer, "value": longer}
    found = {name: draw.values(batch, extents[name], sizes["d_model"]) for name in names if name in extents}
    if "value" in found and not instance.subject.offers("own-values"):
        found["value"] = found["key"]
    return tuple(found.values())


def real_ids(draw: Draw, vocab_size: int, pad_id: int, *shape: int) -> Array:
    """Return ids (…) without padding."""
    return np.asarray((pad_id + 1 + draw.ids(max(vocab_size - 1, 1), *shape)) % max(vocab_size, 1))
