import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from .alibi import alibi_bias


class AlibiAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0):
        super().__init__()
        assert d_model % n_heads == 0, (d_model, n_heads)
        self.n_heads = n_heads
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.dropout = dropout

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.Wqkv(x).chunk(3, dim=2)
        q, k, v = [z.reshape(B, T, self.n_heads, -1).transpose(1, 2) for z in (q, k, v)]
        scores = q.matmul(k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + alibi_bias(self.n_heads, T, x.dtype, x.device)
        probs = F.dropout(scores.softmax(-1), self.dropout, self.training)
        return self.out_proj(probs.matmul(v).transpose(1, 2).reshape(B, T, D))


class FFN(nn.Module):
    def __init__(self, d_model, d_inner):
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_inner, bias=False)
        self.act = nn.GELU()
        self.down_proj = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, x):
        return self.down_proj(self.act(self.up_proj(x)))


class AlibiBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_inner, dropout=0.0):
        super().__init__()
        self.norm_1 = nn.LayerNorm(d_model, bias=False)
        self.attn = AlibiAttention(d_model, n_heads, dropout)
        self.norm_2 = nn.LayerNorm(d_model, bias=False)
        self.ffn = FFN(d_model, d_inner)

    def forward(self, x):
        x = x + self.attn(self.norm_1(x))
        return x + self.ffn(self.norm_2(x))


class AlibiLM(nn.Module):
    """Any length goes in, since no table ends."""

    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_inner, dropout=0.0):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList([AlibiBlock(d_model, n_heads, d_inner, dropout) for _ in range(n_layers)])
        self.norm_f = nn.LayerNorm(d_model, bias=False)
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, input_ids):
        x = self.wte(input_ids)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm_f(x), self.wte.weight)
