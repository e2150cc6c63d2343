"""Batches of pairs of similar length, so that little of a batch is padding.

    buckets: pairs in order of length, cut into parts of equal size      a batch: a bucket, then pairs of it, at random

Buckets are drawn as often as they are large, so each pair is as
probable as any other; what is drawn depends on torch's global generator alone, which a checkpoint keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conformkit.reference.seq2seq.data import collate
from conformkit.reference.steps import IGNORED
from conformkit.reference.training.pairs.corpus import Encoded
from conformkit.reference.training.pairs.vocabulary import BOS, EOS, PAD

__all__ = ["Buckets", "PairBatch", "as_batch", "held_out_batches", "padding_share"]

PairBatch = tuple[tuple[Tensor, Tensor], Tensor]
"""((src (B, S), tgt_in (B, T)), tgt_out (B, T)), where targets that are padding do not count."""


class Buckets:
    """Pairs in groups of similar length, from which batches are drawn."""

    def __init__(self, pairs: Encoded, count: int) -> None:
        order = _by_length(pairs)
        self.pairs = pairs
        self.groups = [group for group in order.tensor_split(min(count, len(pairs))) if len(group)]
        self.sizes = torch.tensor([len(group) for group in self.groups], dtype=torch.float64)

    def draw(self, size: int, device: torch.device) -> PairBatch:
        """Return a batch of one bucket's pairs, each drawn independently of the others."""
        group = self.groups[int(torch.multinomial(self.sizes, 1))]
        rows = group[torch.randint(len(group), (size,))]
        return as_batch([self.pairs[row] for row in rows.tolist()], device)


def as_batch(pairs: Sequence[tuple[list[int], list[int]]], device: torch.device) -> PairBatch:
    """Pad pairs to a batch; targets that are padding are ignored by every loss."""
    src, tgt_in, tgt_out = (part.to(device) for part in collate(pairs, PAD, BOS, EOS))
    return (src, tgt_in), tgt_out.masked_fill(tgt_out == PAD, IGNORED)


def held_out_batches(pairs: Encoded, size: int, most: int, device: torch.device) -> list[PairBatch]:
    """Cut at most `most` batches from pairs that are evenly spread over a list, the same every time."""
    count = min(len(pairs), size * most)
    chosen = [pairs[number * len(pairs) // count] for number in range(count)]
    order = _by_length(chosen)
    return [as_batch([chosen[row] for row in rows.tolist()], device) for rows in torch.split(order, size)]


def padding_share(buckets: Buckets, size: int, batches: int = 50) -> float:
    """Return the share of ids in batches of this size that are padding; the random state stays as it is."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        drawn = [buckets.draw(size, torch.device("cpu")) for _ in range(batches)]
    sides = [side for (src, tgt), _ in drawn for side in (src, tgt)]
    return sum(int((side == PAD).sum()) for side in sides) / sum(side.numel() for side in sides)


def _by_length(pairs: Encoded) -> Tensor:
    lengths = torch.tensor([len(source) + len(target) for source, target in pairs])  # (N,)
    return torch.argsort(lengths, stable=True)
