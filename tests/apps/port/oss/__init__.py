"""gpt-oss by hand: a fused projection, sinks as a last column of scores, experts in one array, YaRN's angles."""

import math

import torch
from torch import nn


def frequencies(width, base, factor, length, fast, slow):
    own = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    low, high = (width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
    share = ((torch.arange(width // 2) - max(low, 0)) / (min(high, width - 1) - max(low, 0))).clip(0, 1)
    return own * (1 - share) + own / factor * share


def turned(x, factor=4.0):
    own = frequencies(x.shape[-1], 150000.0, factor, 64, 32.0, 1.0)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * own
    grown = 0.1 * math.log(factor) + 1
    cos, sin = (angle.cos() * grown).to(x.dtype), (angle.sin() * grown).to(x.dtype)
    one, other = x.chunk(2, -1)
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)


class Layer(nn.Module):
    def __init__(self, width, heads, few, hidden, experts, window):
        super().__init__()
        self.heads, self.few, self.window = heads, few, window
        part = width // heads
        self.attn_norm, self.mlp_norm = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.qkv, self.out = nn.Linear(width, (heads + 2 * few) * part), nn.Linear(width, width)
        self.sinks = nn.Parameter(torch.randn(heads))
        self.router = nn.Linear(width, experts)
        self.gate_up = nn.Parameter(torch.randn(experts, 2 * hidden, width) * 0.1)
        self.gate_up_bias = nn.Parameter(torch.randn(experts, 2 * hidden) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, width, hidden) * 0.1)
        self.down_bias = nn.Parameter(torch.randn(experts, width) * 0.1)

    def attend(self, x):
        length, part = x.shape[1], x.shape[-1] // self.heads
        q, k, v = self.qkv(x).split([self.heads * part, self.few * part, self.few * part], -1)
        q, k, v = (a.unflatten(-1, (-1, part)).transpose(1, 2) for a in (q, k, v))
        k, v = (a.repeat_interleave(self.heads // self.few, 1) for a in (turned(k), v))
        scores = turned(q) @ k.mT / math.sqrt(part)
        distance = torch.arange(length)[:, None] - torch.arange(length)
        hidden = (distance < 0) | (distance >= (self.window or length))
        sinks = self.sinks[:, None, None].expand(len(x), -1, length, 1)
        weights = torch.cat([scores.masked_fill(hidden, -math.inf), sinks], -1).softmax(-1)[..., :-1]
        return self.out((weights @ v).transpose(1, 2).flatten(2))

    def feed(self, x):
        best, which = self.router(x).topk(2, dim=-1)
        chosen = which.flatten(0, 1)
        inner = torch.einsum("bkfm,bm->bkf", self.gate_up[chosen], x.flatten(0, 1)) + self.gate_up_bias[chosen]
        gate, linear = inner[..., ::2].clamp(max=7.0), inner[..., 1::2].clamp(-7.0, 7.0)
        inner = gate * torch.sigmoid(1.702 * gate) * (linear + 1)
        out = torch.einsum("bkmf,bkf->bkm", self.down[chosen], inner) + self.down_bias[chosen]
        return (out * best.softmax(-1).flatten(0, 1)[..., None]).sum(1).view_as(x)

    def forward(self, x):
        x = x + self.attend(self.attn_norm(x))
        return x + self.feed(self.mlp_norm(x))


class Oss(nn.Module):
    def __init__(self, vocab, width, heads, few, depth, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.block = nn.ModuleList(Layer(width, heads, few, hidden, 6, 0 if n % 2 else 5) for n in range(depth))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.unembedding = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.block:
            x = layer(x)
        return self.unembedding(self.norm(x))
