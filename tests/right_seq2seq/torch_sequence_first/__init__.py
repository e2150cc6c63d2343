"""nn.Transformer, sequence first as it is by default, within a model whose ids are (B, T)."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, dropout=0.0):
        super().__init__()
        rates = torch.exp(-torch.arange(0, d_model, 2) * math.log(10000) / d_model)
        angles = torch.arange(max_len)[:, None] * rates
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(max_len, d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", table)

    def forward(self, x):
        return self.dropout(x + self.table[: x.size(1)])


class Seq2SeqTransformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, nhead, enc_layers, dec_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.transformer = nn.Transformer(
            d_model, nhead, enc_layers, dec_layers, d_ff, dropout, norm_first=True, batch_first=False
        )
        self.generator = nn.Linear(d_model, tgt_vocab)
        self.src_tok_emb = nn.Embedding(src_vocab, d_model)
        self.tgt_tok_emb = nn.Embedding(tgt_vocab, d_model)
        self.positions = PositionalEncoding(d_model, max_len, dropout)

    def forward(
        self, src, tgt, tgt_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):  # fmt: skip
        outs = self.transformer(
            self.positions(self.src_tok_emb(src) * self.scale).transpose(0, 1), self.positions(self.tgt_tok_emb(tgt) * self.scale).transpose(0, 1),
            None, tgt_mask, None, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask,
        )  # fmt: skip
        return self.generator(outs).transpose(0, 1)

    def encode(self, src, src_key_padding_mask=None):
        embedded = self.positions(self.src_tok_emb(src) * self.scale)
        return self.transformer.encoder(embedded.transpose(0, 1), src_key_padding_mask=src_key_padding_mask).transpose(
            0, 1
        )

    def decode(self, tgt, memory, tgt_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None):
        embedded = self.positions(self.tgt_tok_emb(tgt) * self.scale)
        outs = self.transformer.decoder(
            embedded.transpose(0, 1),
            memory.transpose(0, 1),
            tgt_mask,
            None,
            tgt_key_padding_mask,
            memory_key_padding_mask,
        )
        return self.generator(outs).transpose(0, 1)
