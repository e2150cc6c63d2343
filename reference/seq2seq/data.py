"""From pairs of sequences to a batch that a decoder learns from (teacher forcing).

    src = [s_1 … s_m, pad …]        tgt_in = [bos, y_1 … y_n, pad …]        tgt_out = [y_1 … y_n, eos, pad …]

At each place the decoder reads tgt_in up to there and predicts tgt_out there. Vaswani et al. 2017, §3.1. Without the
end id a model does not learn to stop.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conformkit.reference.errors import ShapeError, SizeError

__all__ = ["collate", "shift_right"]

Ids = Tensor | Sequence[int]


def shift_right(tgt: Tensor, bos_id: int) -> Tensor:
    """Return what the decoder reads to predict a target: a begin id, then all ids but the last.

    Shapes: tgt (B, T) → (B, T)
    Raises: ShapeError when the target is not (B, T).
    Source: Vaswani et al. 2017, §3.1. The begin id is made on the target's device.
    """
    if tgt.ndim != 2:
        raise ShapeError("the shape of the target", tuple(tgt.shape), "(batch, positions)")
    begin = tgt.new_full((len(tgt), 1), bos_id)  # (B, 1)
    return torch.cat([begin, tgt], dim=1)[:, :-1]  # (B, T)


def collate(pairs: Sequence[tuple[Ids, Ids]], pad_id: int, bos_id: int, eos_id: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pad pairs of source and target to the longest of each, and add where targets begin and end.

    Shapes: pairs of (m,) and (n,) → src (B, max m), tgt_in and tgt_out (B, max n + 1), int64
    Raises: SizeError where there is no pair.
    Source: Vaswani et al. 2017, §3.1; Sutskever et al. 2014, §2. Masks are made by `create_masks(src, tgt_in)`.
    """
    if not pairs:
        raise SizeError("the number of pairs", 0, "at least 1")
    sources = [torch.as_tensor(source).long() for source, _ in pairs]
    targets = [torch.as_tensor(target).long() for _, target in pairs]
    src = pad_sequence(sources, batch_first=True, padding_value=pad_id)  # (B, S)
    with_end = [torch.cat([target, target.new_tensor([eos_id])]) for target in targets]
    with_begin = [torch.cat([target.new_tensor([bos_id]), target]) for target in targets]
    tgt_out = pad_sequence(with_end, batch_first=True, padding_value=pad_id)  # (B, T)
    tgt_in = pad_sequence(with_begin, batch_first=True, padding_value=pad_id)  # (B, T)
    return src, tgt_in, tgt_out
