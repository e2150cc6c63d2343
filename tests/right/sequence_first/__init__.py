"""Positions before batch, (T, B, D), all the way; values projected first, then keys, then queries."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    logits = torch.matmul(q, k.transpose(-2, -1)).div(math.sqrt(k.shape[-1]))
    if mask is not None:
        if not (mask.dtype == torch.bool or torch.is_floating_point(mask)):
            raise TypeError(f"mask is {mask.dtype}")
        penalty = (
            torch.zeros_like(mask, dtype=logits.dtype).masked_fill(~mask, -torch.inf)
            if mask.dtype == torch.bool
            else mask
        )
        logits = logits + penalty.to(logits.dtype).expand(logits.shape)
    peak = logits.amax(-1, keepdim=True)
    weights = (logits - torch.where(peak.isfinite(), peak, 0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    return torch.matmul(weights / torch.where(total > 0, total, 1.0), v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads <= 0 or d_model <= 0 or d_model % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_model} features")
        self.heads, self.causal = num_heads, causal
        self.vkq = nn.Linear(d_model, 3 * d_model, bias=False)
        self.o = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        t, b, d = x.shape
        # Batch and heads share one axis: (T, B, D) → (B·H, T, D/H).
        v, k, q = (
            part.reshape(t, b * self.heads, d // self.heads).transpose(0, 1) for part in self.vkq(x).chunk(3, -1)
        )
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()[None] if self.causal else None
        y = scaled_dot_product_attention(q, k, v, mask)
        return self.drop(self.o(y.transpose(0, 1).reshape(t, b, d)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.first, self.second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.first(x)
        return self.second(self.drop(h * torch.distributions.Normal(0.0, 1.0).cdf(h).to(h.dtype)))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        rates = 10000.0 ** (torch.arange(d_model).div(2, rounding_mode="floor").double() * -2 / d_model)
        phases = (torch.arange(d_model) % 2) * math.pi / 2  # a cosine is a sine, a quarter turn ahead
        angles = torch.arange(max_len).double()[:, None] * rates
        self.register_buffer("wave", torch.where(phases > 0, angles.cos(), angles.sin())[:, None])

    def forward(self, x):
        if x.dim() != 3 or len(x) > len(self.wave) or x.shape[2] != self.wave.shape[2]:
            raise ValueError(f"cannot add {tuple(self.wave.shape)} to {tuple(x.shape)}")
        return x + self.wave[: len(x)].to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attn, self.attn_norm = MultiHeadAttention(d_model, num_heads, dropout, causal), nn.LayerNorm(d_model)
        self.ffn, self.ffn_norm = FeedForward(d_model, d_ff, dropout), nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed, self.positions = nn.Embedding(vocab_size, d_model), PositionalEncoding(d_model, block_size)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.out_norm, self.to_logits = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.positions(self.embed(ids))  # ids (T, B)
        for block in self.blocks:
            x = block(x)
        return self.to_logits(self.out_norm(x))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if len(ids) == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"{len(ids)} ids, {max_new_tokens} new ones, temperature {temperature}")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0.0 < top_p <= 1.0):
            raise ValueError(f"top_k {top_k}, top_p {top_p}")
        modes = [(m, m.training) for m in self.modules()]
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits = self(ids[-self.block_size :])[-1]
                values, order = logits.sort(descending=True, dim=-1)
                if temperature == 0:
                    rank = torch.zeros_like(order[:, :1])
                else:
                    p = (values / temperature).softmax(-1)[:, :top_k]
                    p = p / p.sum(-1, keepdim=True)
                    if top_p is not None:
                        p = p * ((p.cumsum(-1) - p) < top_p)
                    rank = torch.multinomial(p, 1)
                ids = torch.cat([ids, order.gather(-1, rank).T.to(ids.dtype)])
        finally:
            for m, mode in modes:
                m.training = mode
        return ids
