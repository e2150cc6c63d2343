"""BERT without its pretraining heads.

    H = Encoder(BertEmbeddings(ids, segments))        pooled = tanh(H[:, 0] W_Pᵀ + b_P)

H ∈ ℝ^(B×T×D) has a row for each id, which has read the ids on both sides of it; the pooled row stands for the whole
text, whose first id is [CLS]. Devlin et al. 2019, §3; the pooler is in its code (`pooler/dense`), not in the paper.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.encoder.embeddings import BertEmbeddings
from conformkit.reference.seq2seq.encoder import Encoder
from conformkit.reference.seq2seq.masks import create_padding_mask
from conformkit.spec.variants import BERT, Variant

__all__ = ["BertModel", "Pooler", "initialize"]


class Pooler(nn.Module):
    """Sum up a text in one row: a linear map of its first position, then tanh.

    Shapes: (B, T, D) → (B, D)
    Source: the code of Devlin et al. 2019.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (B, T, D) to (B, D)."""
        return torch.tanh(self.dense(hidden[:, 0]))


class BertModel(nn.Module):
    """Read a text in both directions.

    Shapes: ids (B, T), segments (B, T), mask (B, 1, 1, T), T at most max_len → hidden rows (B, T, D), pooled (B, D)
    Raises: as BertEmbeddings and Encoder.
    Source: Devlin et al. 2019, §3. Differs: a mask that is missing is built from `pad_id`.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        max_len: int,
        num_segments: int = 2,
        dropout: float = 0.0,
        pad_id: int = 0,
        *,
        variant: Variant = BERT,
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embeddings = BertEmbeddings(vocab_size, d_model, max_len, num_segments, dropout, pad_id, variant=variant)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, dropout, variant=variant)
        self.pooler = Pooler(d_model) if variant.pooler else None
        initialize(self)

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor] | Tensor:
        """Map ids (B, T) to hidden rows (B, T, D) and the pooled row (B, D); the rows alone without a pooler."""
        hidden = self.hidden(ids, segments, mask)
        return hidden if self.pooler is None else (hidden, self.pooler(hidden))

    def hidden(self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Map ids (B, T) to hidden rows (B, T, D). Without a mask, positions of `pad_id` are hidden."""
        x = self.embeddings(ids, segments)  # (B, T, D)
        mask = create_padding_mask(ids, self.pad_id) if mask is None else mask  # (B, 1, 1, T)
        hidden: Tensor = self.encoder(x, mask)
        return hidden


@torch.no_grad()
def initialize(model: nn.Module, std: float = 0.02) -> None:
    """Start tables and matrices at N(0, σ²), biases at 0; norms start as the identity on their own.

    Source: the code of Devlin et al. 2019, whose σ is 0.02.
    """
    for module in model.modules():
        if isinstance(module, BertEmbeddings):
            module.initialize(std)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
