"""GPT-2 with q, k, v of each head next to each other, linear layers, and a head that is not tied."""

import math

import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        z = self.qkv(x).view(b, t, self.h, 3, c // self.h)
        q, k, v = (z[..., i, :].transpose(1, 2) for i in range(3))
        s = q @ k.transpose(-1, -2) / math.sqrt(c // self.h)
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.ln_a, self.ln_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attn(width, heads)
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.act = nn.GELU(approximate="tanh")

    def forward(self, x):
        x = x + self.attn(self.ln_a(x))
        return x + self.fc2(self.act(self.fc1(self.ln_b(x))))


class Net(nn.Module):
    def __init__(self, vocab, width, heads, depth, hidden, context):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, hidden) for _ in range(depth))
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.final(x))
