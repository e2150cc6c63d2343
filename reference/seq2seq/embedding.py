"""Token embedding: a row of a table for each id.

    e(id) = s · E[id]        s = √D where the variant scales embeddings, otherwise 1

E ∈ ℝ^(V×D). Vaswani et al. 2017, §3.4. The scale belongs to the input side only: a head that shares E does not scale.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.errors import DtypeError, ShapeError, SizeError, TokenError
from conformkit.reference.sizes import check_at_least
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["TokenEmbedding"]


class TokenEmbedding(nn.Module):
    """Look up a learned row for each token id.

    Shapes: ids (B, T) → (B, T, D)
    Raises: SizeError for a size below 1, or a pad_id outside the vocabulary; ShapeError when ids are not (B, T);
            DtypeError for ids that are not integers; TokenError for an id outside the vocabulary.
    Source: Vaswani et al. 2017, §3.4. The row of `pad_id` starts at 0 and gets no gradient.
    """

    def __init__(
        self, vocab_size: int, d_model: int, pad_id: int | None = None, *, variant: Variant = CANONICAL
    ) -> None:  # fmt: skip
        super().__init__()
        check_at_least(1, vocab_size=vocab_size, d_model=d_model)
        if pad_id is not None and not 0 <= pad_id < vocab_size:
            raise SizeError("pad_id", pad_id, f"an id from 0 to vocab_size - 1 = {vocab_size - 1}, or None")
        self.vocab_size, self.pad_id = vocab_size, pad_id
        self.scale = math.sqrt(d_model) if variant.embedding_scale else 1.0
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.initialize(std=1.0 / self.scale)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to rows (B, T, D)."""
        self.check_ids(ids)
        rows = F.embedding(ids.long(), self.weight, padding_idx=self.pad_id)  # (B, T, D)
        return rows * self.scale

    @torch.no_grad()
    def initialize(self, std: float) -> None:
        """Draw the table anew, then clear the row of the pad id: a normal draw over the whole table would fill it."""
        nn.init.normal_(self.weight, std=std)
        if self.pad_id is not None:
            self.weight[self.pad_id] = 0.0

    def check_ids(self, ids: Tensor) -> None:
        """Refuse what is not a batch of rows of token ids.

        Raises: DtypeError, ShapeError or TokenError.
        """
        if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
            raise DtypeError("the dtype of the ids", ids.dtype, "an integer type")
        if ids.ndim != 2:
            raise ShapeError("the shape of the ids", tuple(ids.shape), "(batch, positions)")
        outside = ids[(ids < 0) | (ids >= self.vocab_size)]  # (n,)
        if outside.numel():
            raise TokenError("a token id", int(outside[0]), f"one from 0 to vocab_size - 1 = {self.vocab_size - 1}")
