"""Embeddings whose factor √d_model is a tensor of the model's format."""

import torch
from torch import nn


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)

    def forward(self, ids):
        rows = self.table(ids)
        return rows * torch.tensor(rows.shape[-1] ** 0.5, dtype=rows.dtype, device=rows.device)
