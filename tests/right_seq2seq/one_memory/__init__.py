"""Post-norm, attention (x, memory) with keys and values in one projection, one table of positions, a tied head; no stacks."""

import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0, f"dim {dim} is no multiple of heads {heads}"
        self.heads = heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wkv = nn.Linear(dim, 2 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.p = dropout

    def forward(self, x, memory, mask=None):
        b, t, d = x.shape
        s = memory.shape[1]
        q = self.wq(x).reshape(b, t, self.heads, -1)
        k, v = self.wkv(memory).reshape(b, s, 2, self.heads, -1).unbind(2)
        att = torch.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            att = att.masked_fill(~mask, torch.finfo(att.dtype).min)
        att = F.dropout(F.softmax(att, dim=-1), self.p, self.training)
        return self.wo(torch.einsum("bhts,bshd->bthd", att, v).reshape(b, t, d))


class MLP(nn.Sequential):
    def __init__(self, dim, hidden, dropout=0.0):
        super().__init__(nn.Linear(dim, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, dim))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.attn = MultiHeadAttention(dim, heads, dropout)
        self.mlp = MLP(dim, hidden, dropout)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        x = self.ln1(x + self.drop(self.attn(x, x, mask)))
        return self.ln2(x + self.drop(self.mlp(x)))


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.self_attn = MultiHeadAttention(dim, heads, dropout)
        self.cross_attn = MultiHeadAttention(dim, heads, dropout)
        self.mlp = MLP(dim, hidden, dropout)
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.ln1(x + self.drop(self.self_attn(x, x, self_mask)))
        x = self.ln2(x + self.drop(self.cross_attn(x, memory, cross_mask)))
        return self.ln3(x + self.drop(self.mlp(x)))


class Transformer(nn.Module):
    def __init__(
        self, n_src_vocab, n_trg_vocab, dim, heads, enc_layers, dec_layers, hidden, max_len, dropout=0.0, pad_idx=0
    ):
        super().__init__()
        self.pad_idx, self.max_len = pad_idx, max_len
        self.src_emb = nn.Embedding(n_src_vocab, dim, padding_idx=pad_idx)
        self.trg_emb = nn.Embedding(n_trg_vocab, dim, padding_idx=pad_idx)
        self.pos = nn.Embedding(max_len, dim)
        self.encoder = nn.ModuleList(EncoderBlock(dim, heads, hidden, dropout) for _ in range(enc_layers))
        self.decoder = nn.ModuleList(DecoderBlock(dim, heads, hidden, dropout) for _ in range(dec_layers))
        self.out = nn.Linear(dim, n_trg_vocab, bias=False)
        self.out.weight = self.trg_emb.weight
        self.drop = nn.Dropout(dropout)

    def encode(self, src, src_mask=None):
        if src_mask is None:
            src_mask = (src != self.pad_idx)[:, None, None]
        x = self.drop(self.src_emb(src) + self.pos(torch.arange(src.shape[1], device=src.device)))
        for layer in self.encoder:
            x = layer(x, src_mask)
        return x

    def decode(self, trg, memory, trg_mask=None, src_mask=None):
        t = trg.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool, device=trg.device).tril()
        mask = causal & (trg != self.pad_idx)[:, None, None] if trg_mask is None else trg_mask
        x = self.drop(self.trg_emb(trg) + self.pos(torch.arange(t, device=trg.device)))
        for layer in self.decoder:
            x = layer(x, memory, mask, src_mask)
        return self.out(x)

    def forward(self, src, trg, src_mask=None, trg_mask=None):
        if src_mask is None:
            src_mask = (src != self.pad_idx)[:, None, None]
        return self.decode(trg, self.encode(src, src_mask), trg_mask, src_mask)
