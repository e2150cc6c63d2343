from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    vocab: int
    width: int
    heads: int
    depth: int
    inner: int
    window: int
    dropout: float = 0.0
    dtype: str = "float32"

    @property
    def kind(self):
        return getattr(torch, self.dtype)


class Attend(nn.Module):
    """x + attention(norm(x)), if it is not called as the bare attention."""

    def __init__(self, settings):
        super().__init__()
        if settings.width % settings.heads:
            raise ValueError(f"width {settings.width} is no multiple of heads {settings.heads}")
        self.heads = settings.heads
        self.kv = nn.Linear(settings.width, 2 * settings.width, bias=False, dtype=settings.kind)
        self.q = nn.Linear(settings.width, settings.width, bias=False, dtype=settings.kind)
        self.o = nn.Linear(settings.width, settings.width, bias=False, dtype=settings.kind)
        self.lost = nn.Dropout(settings.dropout)

    def forward(self, x):
        b, t, d = x.shape
        k, v = self.kv(x).view(b, t, self.heads, 2, -1).unbind(-2)
        q, k, v = (a.transpose(1, 2) for a in (self.q(x).view(b, t, self.heads, -1), k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.lost(self.o(y.transpose(1, 2).reshape(b, t, d)))


class Feed(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.wide = nn.Linear(settings.width, settings.inner, dtype=settings.kind)
        self.back = nn.Linear(settings.inner, settings.width, dtype=settings.kind)
        self.lost = nn.Dropout(settings.dropout)

    def forward(self, x):
        return self.lost(self.back(F.gelu(self.wide(x))))


class Tower(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.window = settings.window
        self.words = nn.Embedding(settings.vocab, settings.width, dtype=settings.kind)
        self.places = nn.Embedding(settings.window, settings.width, dtype=settings.kind)
        body = []
        for _ in range(settings.depth):
            body += [nn.LayerNorm(settings.width, dtype=settings.kind), Attend(settings)]
            body += [nn.LayerNorm(settings.width, dtype=settings.kind), Feed(settings)]
        self.body = nn.ModuleList([*body, nn.LayerNorm(settings.width, dtype=settings.kind)])
        self.apply(self.small)

    @staticmethod
    def small(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        if ids.shape[1] > self.window:
            raise ValueError(f"{ids.shape[1]} ids do not fit a window of {self.window}")
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        *pairs, last = self.body
        for norm, layer in zip(pairs[::2], pairs[1::2]):
            x = x + layer(norm(x))
        return last(x) @ self.words.weight.T

    @torch.no_grad()
    def sample(self, ids, count):
        was = self.training
        self.eval()
        for _ in range(count):
            chances = self(ids[:, -self.window :])[:, -1].softmax(-1)
            ids = torch.cat([ids, torch.multinomial(chances, 1)], 1)
        self.train(was)
        return ids
