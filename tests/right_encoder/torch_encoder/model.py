from __future__ import annotations

import torch
from torch import Tensor, nn


class BertModel(nn.Module):
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
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.segments = nn.Embedding(num_segments, d_model)
        self.positions = nn.Parameter(torch.randn(max_len, d_model) * 0.02)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)
        self.drop = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(
            d_model,
            num_heads,
            d_ff,
            dropout,
            activation="gelu",
            layer_norm_eps=1e-12,
            batch_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        for p in self.encoder.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        self.pooler = nn.Linear(d_model, d_model)

    def forward(self, ids: Tensor, segments: Tensor | None = None, key_padding_mask: Tensor | None = None):
        if segments is None:
            segments = torch.zeros_like(ids)
        x = self.tokens(ids) + self.segments(segments) + self.positions[: ids.size(1)]
        hidden = self.encoder(self.drop(self.norm(x)), src_key_padding_mask=key_padding_mask)
        return hidden, torch.tanh(self.pooler(hidden[:, 0]))


class BertForPreTraining(nn.Module):
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
    ) -> None:
        super().__init__()
        self.bert = BertModel(vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments, dropout)
        self.transform = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU(), nn.LayerNorm(d_model, eps=1e-12))
        self.decoder = nn.Linear(d_model, vocab_size)
        self.decoder.weight = self.bert.tokens.weight
        self.next_sentence = nn.Linear(d_model, 2)

    def forward(self, ids: Tensor, segments: Tensor | None = None, key_padding_mask: Tensor | None = None):
        hidden, pooled = self.bert(ids, segments, key_padding_mask)
        return self.decoder(self.transform(hidden)), self.next_sentence(pooled)
