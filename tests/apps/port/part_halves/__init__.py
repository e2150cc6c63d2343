"""GPT-J in which the rotating half of each head lies in halves, not in pairs."""

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention


def turned(x):
    count = x.shape[-1] // 2
    rate = 10000.0 ** -(torch.arange(0, count, 2, dtype=x.dtype) / count)
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rate
    one, other, rest = x.tensor_split([count // 2, count], -1)
    return torch.cat(
        [one * angle.cos() - other * angle.sin(), other * angle.cos() + one * angle.sin(), rest],
        -1,
    )


class Layer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.ln = nn.LayerNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        y = self.ln(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        heads = scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        return x + self.out(heads.transpose(1, 2).flatten(2)) + self.down(gelu(self.up(y), approximate="tanh"))


class Parallel(nn.Module):
    def __init__(self, vocab, width, heads, layers, hidden):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.h = nn.ModuleList(Layer(width, heads, hidden) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.wte(ids)
        for layer in self.h:
            x = layer(x)
        return self.head(self.ln_f(x))
