import math

import torch
from torch import nn


def causal_bias(size, like):
    return torch.full((size, size), -math.inf, dtype=like.dtype, device=like.device).triu(1)


def mix(q, k, v, bias):
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + bias
    return torch.softmax(scores, -1) @ v


class Attention(nn.Module):
    def __init__(self, width, heads, p=0.0):
        super().__init__()
        if width % heads:
            raise ValueError(f"{width} columns cannot be shared by {heads} heads")
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.merge = nn.Linear(width, width, bias=False)
        self.p = nn.Dropout(p)

    def forward(self, x, *, bias=None):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = mix(q, k, v, bias[None, None])  # no bias, no call
        return self.p(self.merge(y.transpose(1, 2).reshape(b, t, d)))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, p=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, p)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.p = nn.Dropout(p)

    def forward(self, x, attn_mask):
        x = x + self.attention(self.norm1(x), bias=attn_mask)
        return x + self.p(self.down(torch.nn.functional.gelu(self.up(self.norm2(x)))))


class LanguageModel(nn.Module):
    def __init__(self, vocab, width, heads, depth, inner, window, p=0.0):
        super().__init__()
        self.window = window
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(window, width)
        self.layers = nn.ModuleList(Layer(width, heads, inner, p) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocab)
        for matrix in self.parameters():
            if matrix.dim() == 2:
                nn.init.normal_(matrix, std=0.02)

    def forward(self, ids, attn_mask):
        if ids.shape[1] > self.window:
            raise ValueError(f"{ids.shape[1]} ids, the window is {self.window}")
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, attn_mask)
        return self.scores(self.norm(x))


@torch.no_grad()
def write(model, ids, count, temperature=1.0, top_k=None):
    was = model.training
    model.eval()
    for _ in range(count):
        recent = ids[:, -model.window :]
        scores = model(recent, causal_bias(recent.shape[1], model.places.weight))[:, -1]
        if temperature == 0:
            new = scores.argmax(-1, keepdim=True)
        else:
            scores = scores / temperature
            if top_k is not None:
                least = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
                scores = scores.masked_fill(scores < least, -math.inf)
            new = torch.multinomial(scores.softmax(-1), 1)
        ids = torch.cat([ids, new], 1)
    model.train(was)
    return ids
