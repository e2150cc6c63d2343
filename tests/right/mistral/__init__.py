"""Sliding windows as a band in one boolean mask, grouped keys and values, a buffer of past keys that rolls."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Args:
    dim: int
    n_heads: int
    n_kv_heads: int
    hidden_dim: int = 0
    n_layers: int = 1
    vocab_size: int = 1
    max_len: int = 4096
    sliding_window: int | None = None
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5


def band(length, window, device=None):
    """True where a query (row) sees a key: not later, and not `window` or more positions earlier."""
    ones = torch.ones(length, length, dtype=torch.bool, device=device)
    seen = ones.tril()
    return seen if window is None else seen & ones.triu(1 - window)


class Attention(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        if args.dim % args.n_heads or (args.dim // args.n_heads) % 2 or args.n_heads % args.n_kv_heads:
            raise ValueError(f"dim {args.dim}, {args.n_heads} heads, {args.n_kv_heads} of keys")
        self.args, self.head_dim = args, args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, args.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, args.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(args.n_heads * self.head_dim, args.dim, bias=False)

    def turned(self, x):
        """x (B, H, T, dh) as complex numbers: neighboring features are one number."""
        rate = self.args.rope_theta ** -(torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim)
        angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), rate)
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.turned(self.wq(x).view(B, T, -1, self.head_dim).transpose(1, 2))
        k = self.turned(self.wk(x).view(B, T, -1, self.head_dim).transpose(1, 2))
        v = self.wv(x).view(B, T, -1, self.head_dim).transpose(1, 2)
        seen = band(T, self.args.sliding_window, x.device)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, -1))


class FeedForward(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        self.w1 = nn.Linear(args.dim, args.hidden_dim, bias=False)
        self.w2 = nn.Linear(args.hidden_dim, args.dim, bias=False)
        self.w3 = nn.Linear(args.dim, args.hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        self.attention, self.feed_forward = Attention(args), FeedForward(args)
        self.attention_norm = nn.RMSNorm(args.dim, eps=args.norm_eps)
        self.ffn_norm = nn.RMSNorm(args.dim, eps=args.norm_eps)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Mistral(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        self.args = args
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList([TransformerBlock(args) for _ in range(args.n_layers)])
        self.norm = nn.RMSNorm(args.dim, eps=args.norm_eps)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def forward(self, ids):
        if ids.shape[1] > self.args.max_len:
            raise ValueError(f"{ids.shape[1]} ids, max_len is {self.args.max_len}")
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))
