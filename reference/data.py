"""From a sequence of token ids to windows: split first, then cut.

    train = ids[: n], val = ids[n :]        n = ⌊fraction · N⌋, N the number of ids
    x = ids[i : i + T], y = ids[i + 1 : i + T + 1]        i ∈ {0, …, N - T - 1} the start of a window, T = block_size

nanoGPT, `train.py`: y[t] = x[t+1], the id that follows. Windows that are cut before the split share almost all their
ids, and a random share of them is in both parts; here no id of one part is a target of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError
from conformkit.reference.sizes import check_at_least

__all__ = ["get_batch", "sliding_windows", "train_val_split"]

Ids = TypeVar("Ids", Tensor, str, Sequence[Any])


def train_val_split(ids: Ids, fraction: float = 0.9) -> tuple[Ids, Ids]:
    """Cut a sequence in two: the first ⌊fraction · N⌋ ids to learn from, the rest to validate on.

    Shapes: ids (N,) → (n,), (N - n,), in their order, none lost
    Raises: SizeError for a fraction that is not between 0 and 1.
    Source: nanoGPT, `data/shakespeare_char/prepare.py` (90 % and 10 %).
    """
    if not 0.0 < fraction < 1.0:
        raise SizeError("fraction", fraction, "above 0 and below 1")
    count = int(fraction * len(ids))
    return ids[:count], ids[count:]


def get_batch(ids: Tensor | Sequence[int], batch_size: int, block_size: int) -> tuple[Tensor, Tensor]:
    """Draw windows, each start as probable as any other and independent of the rest of the batch.

    Shapes: ids (N,), N > T → x, y (B, T) each, int64; copies, so that writing into them leaves ids as they are
    Raises: SizeError for a size below 1, or fewer than T + 1 ids.
    Source: nanoGPT, `train.py`, `get_batch`. Starts come from torch's global generator, on the CPU.
    """
    check_at_least(1, batch_size=batch_size, block_size=block_size)
    tokens = _tokens(ids, block_size)  # (N,)
    starts = torch.randint(len(tokens) - block_size, (batch_size,))  # (B,), each from 0 to N - T - 1
    places = starts[:, None] + torch.arange(block_size)  # (B, T)
    places = places.to(tokens.device)
    return tokens[places], tokens[places + 1]


def sliding_windows(ids: Tensor | Sequence[int], block_size: int) -> tuple[Tensor, Tensor]:
    """Cut every window, one start after the other.

    Shapes: ids (N,), N > T → x, y (N - T, T) each, int64, copies
    Raises: SizeError for a size below 1, or fewer than T + 1 ids.
    Source: minGPT, `projects/chargpt/chargpt.py`, `CharDataset` (stride 1).
    """
    check_at_least(1, block_size=block_size)
    windows = _tokens(ids, block_size).unfold(0, block_size + 1, 1)  # (N - T, T + 1)
    return windows[:, :-1].clone(), windows[:, 1:].clone()  # (N - T, T) each


def _tokens(ids: Tensor | Sequence[int], block_size: int) -> Tensor:
    tokens = torch.as_tensor(ids).long()
    if len(tokens) <= block_size:
        raise SizeError("the number of ids", len(tokens), f"at least block_size + 1 = {block_size + 1}")
    return tokens
