"""From pairs of sequences to batches: Protocols and oracles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT, Named

__all__ = ["Collate", "ShiftRight", "collate", "shift_right"]


@runtime_checkable
class ShiftRight(Named, Protocol[ArrayT]):
    """Return the decoder's input for predicting a target: a begin id, then all ids but the last.

    Shapes: tgt (B, T) → (B, T), integers
    Source: Vaswani et al. 2017, §3.1.
    """

    def __call__(self, tgt: ArrayT, bos_id: int) -> ArrayT: ...


@runtime_checkable
class Collate(Named, Protocol[ArrayT]):
    """Pad pairs of source and target: [bos, y, pad …] is read, [y, eos, pad …] predicted.

    All sources get one length and all targets another; it should be that of the longest.

    Shapes: pairs of (m,) and (n,) → src (B, max m), tgt_in and tgt_out (B, max n + 1), integers
    Source: Vaswani et al. 2017, §3.1; the end id: Sutskever et al. 2014, §2.
    """

    def __call__(
        self, pairs: list[tuple[ArrayT, ArrayT]], pad_id: int, bos_id: int, eos_id: int
    ) -> tuple[ArrayT, ArrayT, ArrayT]: ...


def shift_right(tgt: Array, bos_id: int) -> Array:
    """Return bos and the target (B, T) without its last column."""
    return np.concatenate([np.full((len(tgt), 1), bos_id, tgt.dtype), tgt[:, :-1]], axis=1)


def collate(pairs: Sequence[tuple[Array, Array]], pad_id: int, bos_id: int, eos_id: int) -> tuple[Array, Array, Array]:
    """Return src (B, max m), tgt_in and tgt_out (B, max n + 1)."""
    return (
        _padded([source.tolist() for source, _ in pairs], pad_id),
        _padded([[bos_id, *target.tolist()] for _, target in pairs], pad_id),
        _padded([[*target.tolist(), eos_id] for _, target in pairs], pad_id),
    )


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Array:
    found = np.full((len(rows), max(map(len, rows))), pad_id, np.int64)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found
