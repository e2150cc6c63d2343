"""From a sequence of ids to windows: Protocols and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT, Named

__all__ = ["GetBatch", "SlidingWindows", "TrainValSplit", "sliding_windows"]


@runtime_checkable
class TrainValSplit(Named, Protocol[ArrayT]):
    """Cut a sequence in two, contiguous and in order: the first ⌊fraction · N⌋ ids, and the rest.

    Source: nanoGPT, `data/shakespeare_char/prepare.py`.
    """

    def __call__(self, ids: ArrayT, fraction: float = 0.9) -> tuple[ArrayT, ArrayT]: ...


@runtime_checkable
class GetBatch(Named, Protocol[ArrayT]):
    """Draw windows with uniformly distributed starts: x = ids[i : i + T], y = ids[i + 1 : i + T + 1].

    Shapes: ids (N,), N > T → x, y (B, T), integers
    Raises: anything, for N ≤ T.
    Source: nanoGPT, `train.py`, `get_batch`. Starts come from the framework's global generator.
    """

    def __call__(self, ids: ArrayT, batch_size: int, block_size: int) -> tuple[ArrayT, ArrayT]: ...


@runtime_checkable
class SlidingWindows(Named, Protocol[ArrayT]):
    """Cut every window, one start after the other.

    Shapes: ids (N,), N > T → x, y (N - T, T)
    Source: minGPT, `projects/chargpt/chargpt.py`, `CharDataset`.
    """

    def __call__(self, ids: ArrayT, block_size: int) -> tuple[ArrayT, ArrayT]: ...


def sliding_windows(ids: Array, block_size: int) -> tuple[Array, Array]:
    """Return inputs and targets (N - T, T) of all windows."""
    starts = np.arange(len(ids) - block_size)[:, None]
    places = starts + np.arange(block_size)  # (N - T, T)
    return ids[places], ids[places + 1]
