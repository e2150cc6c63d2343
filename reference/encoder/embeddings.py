"""What BERT's first layer reads.

    z = LN(E[ids] + S[segments] + P)        then dropout

E ∈ ℝ^(V×D) has a row for each id, S ∈ ℝ^(N×D) one for each segment, P ∈ ℝ^(L×D) one for each position, from 0. The norm
is part of the embeddings, so that post-norm layers start from normalized rows. Devlin et al. 2019, figure 2, and its
code, which adds the norm and the dropout that the paper does not mention.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.errors import DtypeError, ShapeError, TokenError
from conformkit.reference.norms import norm_for
from conformkit.reference.positional_encoding import LearnedPositions, positions_for
from conformkit.reference.seq2seq.embedding import TokenEmbedding
from conformkit.reference.sizes import check_at_least, check_rate
from conformkit.spec.variants import BERT, Variant

__all__ = ["BertEmbeddings"]


class BertEmbeddings(nn.Module):
    """Add the rows of id, segment and position, then normalize.

    Shapes: ids (B, T), segments (B, T), T at most max_len → (B, T, D)
    Raises: SizeError for bad sizes; ShapeError when ids are too long, or segments have another shape; DtypeError and
            TokenError for ids and segments that are no rows of their tables.
    Source: Devlin et al. 2019, figure 2. Without segments, all ids belong to segment 0.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int,
        num_segments: int = 2,
        dropout: float = 0.0,
        pad_id: int = 0,
        *,
        variant: Variant = BERT,
    ) -> None:
        super().__init__()
        check_at_least(1, max_len=max_len, num_segments=num_segments)
        check_rate(dropout)
        self.max_len, self.num_segments = max_len, num_segments
        self.tokens = TokenEmbedding(vocab_size, d_model, variant=variant)
        self.segments = nn.Embedding(num_segments, d_model) if variant.segments else None
        self.positions = positions_for(d_model, max_len, variant, pad_id)
        self.norm = norm_for(d_model, variant) if variant.embedding_norm else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Map ids (B, T) and segments (B, T) to rows (B, T, D)."""
        if ids.ndim == 2 and ids.shape[1] > self.max_len:
            raise ShapeError("the number of ids in a row", ids.shape[1], f"at most max_len = {self.max_len}")
        x = self.tokens(ids)  # (B, T, D)
        if self.segments is not None:
            segments = torch.zeros_like(ids) if segments is None else segments  # (B, T)
            self._check_segments(segments, ids)
            x = x + self.segments(segments.long())  # (B, T, D)
        x = self.positions(x)
        if self.norm is not None:
            x = self.norm(x)
        dropped: Tensor = self.dropout(x)
        return dropped

    @torch.no_grad()
    def initialize(self, std: float) -> None:
        """Draw all three tables anew, N(0, std²)."""
        self.tokens.initialize(std)
        if self.segments is not None:
            nn.init.normal_(self.segments.weight, std=std)
        if isinstance(self.positions, LearnedPositions):
            nn.init.normal_(self.positions.weight, std=std)

    def _check_segments(self, segments: Tensor, ids: Tensor) -> None:
        if segments.dtype == torch.bool or segments.is_floating_point() or segments.is_complex():
            raise DtypeError("the dtype of the segments", segments.dtype, "an integer type")
        if segments.shape != ids.shape:
            raise ShapeError("the shape of the segments", tuple(segments.shape), f"that of the ids, {tuple(ids.shape)}")
        outside = segments[(segments < 0) | (segments >= self.num_segments)]  # (n,)
        if outside.numel():
            wanted = f"one from 0 to num_segments - 1 = {self.num_segments - 1}"
            raise TokenError("a segment", int(outside[0]), wanted)
