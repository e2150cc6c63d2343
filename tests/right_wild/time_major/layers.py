import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    """Multi-head attention. Inputs are time major: (T, B, D)."""

    def __init__(self, emb_size, nhead, dropout=0.0):
        super().__init__()
        assert emb_size % nhead == 0
        self.nhead, self.hd = nhead, emb_size // nhead
        self.q_lin = nn.Linear(emb_size, emb_size)
        self.k_lin = nn.Linear(emb_size, emb_size)
        self.v_lin = nn.Linear(emb_size, emb_size)
        self.o_lin = nn.Linear(emb_size, emb_size)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, memory, attn_mask=None, key_padding_mask=None):
        # query (T, B, D), memory (S, B, D); attn_mask (T, S) float, key_padding_mask (B, S) True at padding
        T, B, D = query.shape
        S = memory.shape[0]
        q = self.q_lin(query).view(T, B * self.nhead, self.hd).transpose(0, 1)
        k = self.k_lin(memory).view(S, B * self.nhead, self.hd).transpose(0, 1)
        v = self.v_lin(memory).view(S, B * self.nhead, self.hd).transpose(0, 1)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.hd)
        if attn_mask is not None:
            scores = scores + attn_mask
        if key_padding_mask is not None:
            scores = scores.view(B, self.nhead, T, S)
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], float('-inf'))
            scores = scores.view(B * self.nhead, T, S)
        out = torch.bmm(self.drop(F.softmax(scores, dim=-1)), v)
        return self.o_lin(out.transpose(0, 1).reshape(T, B, D))


class FFN(nn.Module):
    def __init__(self, emb_size, dim_feedforward, dropout=0.0):
        super().__init__()
        self.lin1 = nn.Linear(emb_size, dim_feedforward)
        self.lin2 = nn.Linear(dim_feedforward, emb_size)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.lin2(self.drop(F.relu(self.lin1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, emb_size, nhead, dim_feedforward, dropout=0.0):
        super().__init__()
        self.self_attn = Attention(emb_size, nhead, dropout)
        self.ffn = FFN(emb_size, dim_feedforward, dropout)
        self.norm1 = nn.LayerNorm(emb_size)
        self.norm2 = nn.LayerNorm(emb_size)
        self.drop = nn.Dropout(dropout)

    def forward(self, src, src_key_padding_mask=None):
        src = self.norm1(src + self.drop(self.self_attn(src, src, None, src_key_padding_mask)))
        return self.norm2(src + self.drop(self.ffn(src)))


class DecoderLayer(nn.Module):
    def __init__(self, emb_size, nhead, dim_feedforward, dropout=0.0):
        super().__init__()
        self.self_attn = Attention(emb_size, nhead, dropout)
        self.cross_attn = Attention(emb_size, nhead, dropout)
        self.ffn = FFN(emb_size, dim_feedforward, dropout)
        self.norm1 = nn.LayerNorm(emb_size)
        self.norm2 = nn.LayerNorm(emb_size)
        self.norm3 = nn.LayerNorm(emb_size)
        self.drop = nn.Dropout(dropout)

    def forward(self, tgt, memory, tgt_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None):
        tgt = self.norm1(tgt + self.drop(self.self_attn(tgt, tgt, tgt_mask, tgt_key_padding_mask)))
        tgt = self.norm2(tgt + self.drop(self.cross_attn(tgt, memory, None, memory_key_padding_mask)))
        return self.norm3(tgt + self.drop(self.ffn(tgt)))
