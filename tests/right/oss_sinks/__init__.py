"""Attention with sinks as in gpt-oss: one fused projection, grouped einsum, a window, the sink as a last column."""

import torch
from torch import nn


class AttentionBlock(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, sliding_window=4):
        super().__init__()
        if num_attention_heads % 2 or hidden_size % num_attention_heads:
            raise ValueError(f"{hidden_size} features, {num_attention_heads} heads: an even number that divides them")
        self.heads, self.kv, self.sliding_window = num_attention_heads, num_attention_heads // 2, sliding_window
        self.head_dim = hidden_size // num_attention_heads
        self.sinks = nn.Parameter(torch.zeros(num_attention_heads))
        self.qkv = nn.Linear(hidden_size, self.head_dim * (self.heads + 2 * self.kv))
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        batch, length, _ = x.shape
        sizes = [self.heads * self.head_dim, self.kv * self.head_dim, self.kv * self.head_dim]
        q, k, v = self.qkv(x).split(sizes, dim=-1)
        q = q.view(batch, length, self.kv, 2, self.head_dim)
        k, v = k.view(batch, length, self.kv, self.head_dim), v.view(batch, length, self.kv, self.head_dim)
        scores = torch.einsum("bqhmd,bkhd->bhmqk", q, k) * self.head_dim**-0.5
        mask = torch.full((length, length), float("-inf"), dtype=x.dtype, device=x.device)
        scores = scores + (mask.triu(1) + mask.tril(-self.sliding_window))
        sinks = self.sinks.view(1, self.kv, 2, 1, 1).expand(batch, -1, -1, length, 1)
        weights = torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]
        return self.out(torch.einsum("bhmqk,bkhd->bqhmd", weights, v).reshape(batch, length, -1))
