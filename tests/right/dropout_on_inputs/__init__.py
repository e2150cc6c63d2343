"""Dropout on what attention and the network read, and on attention's weights; the caller of `generate` calls `eval()`."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def scaled_dot_product_attention(q, k, v, mask=None, drop=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1).nan_to_num(0.0)
    return (weights if drop is None else drop(weights)) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        self.heads, self.causal = num_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = self.drop(x)
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril() if self.causal else None
        y = scaled_dot_product_attention(q, k, v, mask, self.drop)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.drop(x))))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class PositionalEncoding(nn.Module):
    """Its table grows, as fairseq's does."""

    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.table = d_model, torch.empty(0, d_model)
        self._grow(max_len)

    def _grow(self, rows):
        angles = (
            torch.arange(rows).double()[:, None] / 10000 ** (torch.arange(0, self.d_model, 2) / self.d_model).double()
        )
        table = torch.zeros(rows, self.d_model, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : self.d_model // 2]
        self.table = table

    def forward(self, x):
        if x.size(1) > len(self.table):
            self._grow(x.size(1))
        return x + self.table[: x.size(1)].to(x)


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = PositionalEncoding(d_model, block_size)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)
        self.drop = nn.Dropout(dropout)

    def forward(self, ids):
        x = self.drop(self.positions(self.embedding(ids)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None):
        """Continue ids. Call `model.eval()` first, and `model.train()` afterwards, as in a loop of training."""
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be greater than 0, but is {max_new_tokens}")
        for _ in range(max_new_tokens):
            logits = self(ids[:, -self.block_size :])[:, -1]
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                logits = logits / temperature
                if top_k is not None:
                    least = logits.topk(min(top_k, logits.size(-1))).values[:, [-1]]
                    logits = logits.masked_fill(logits < least, -math.inf)
                new = torch.multinomial(logits.softmax(-1), 1)
            ids = torch.cat([ids, new], dim=1)
        return ids
