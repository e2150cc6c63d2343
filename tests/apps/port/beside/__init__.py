"""GPT-NeoX by hand: attention and feed-forward side by side, a quarter of each head rotates, q, k, v apart."""

import torch
from torch import nn
from torch.nn import functional


def turned(x):
    length, few = x.shape[-2], x.shape[-1] // 4
    angle = torch.arange(length, dtype=x.dtype)[:, None] * 10000.0 ** (-torch.arange(0, few, 2, dtype=x.dtype) / few)
    one, other, rest = x[..., : few // 2], x[..., few // 2 : few], x[..., few:]
    return torch.cat([one * angle.cos() - other * angle.sin(), other * angle.cos() + one * angle.sin(), rest], -1)


class Layer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_f = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        y = self.norm_a(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).flatten(-2)) + self.down(functional.gelu(self.up(self.norm_f(x))))


class Beside(nn.Module):
    def __init__(self, vocab, width, heads, depth, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, heads, hidden) for _ in range(depth))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x))
