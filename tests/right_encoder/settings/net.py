from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    words: int
    width: int
    heads: int
    depth: int
    inner: int
    longest: int
    kinds: int = 2
    drop: float = 0.0


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.before_attention, self.before_network = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.qkv = nn.Linear(s.width, 3 * s.width)
        self.merge = nn.Linear(s.width, s.width)
        self.network = nn.Sequential(nn.Linear(s.width, s.inner), nn.ReLU(), nn.Linear(s.inner, s.width))
        self.drop = nn.Dropout(s.drop)

    def forward(self, x, bias):
        b, t, d = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * (d // self.heads) ** -0.5 + bias, dim=-1)
        x = x + self.drop(self.merge(torch.einsum("bhij,bhjd->bihd", weights, v).reshape(b, t, d)))
        return x + self.drop(self.network(self.before_network(x)))


class TextEncoder(nn.Module):
    def __init__(self, settings):
        super().__init__()
        s = settings
        self.word = nn.Embedding(s.words, s.width)
        self.place = nn.Embedding(s.longest, s.width)
        self.kind = nn.Embedding(s.kinds, s.width)
        self.start = nn.LayerNorm(s.width)
        self.drop = nn.Dropout(s.drop)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.depth))
        self.end = nn.LayerNorm(s.width)

    def forward(self, words, kinds, visible):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.drop(self.start(self.word(words) + self.place(places) + self.kind(kinds)))
        bias = torch.where(visible[:, None, None, :] > 0, 0.0, torch.finfo(x.dtype).min)
        for layer in self.layers:
            x = layer(x, bias.to(x.dtype))
        return {"rows": self.end(x)}


class Heads(nn.Module):
    def __init__(self, settings):
        super().__init__()
        s = settings
        self.body = TextEncoder(s)
        self.pool = nn.Linear(s.width, s.width)
        self.follows = nn.Linear(s.width, 2)
        self.guess = nn.Linear(s.width, s.words)

    def forward(self, words, kinds, visible):
        rows = self.body(words, kinds, visible)["rows"]
        return {"follows": self.follows(self.pool(rows[:, 0]).tanh()), "words": self.guess(rows)}
