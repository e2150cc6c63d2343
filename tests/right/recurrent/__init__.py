"""One position after the other: attention as a state that grows, the model as a step function, drawing with NumPy."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class State(NamedTuple):
    keys: tuple[Tensor, ...] = ()
    values: tuple[Tensor, ...] = ()


def scaled_dot_product_attention(q, k, v, mask=None):
    shape = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if mask is not None:
        scores_shape = (*shape, q.shape[-2], k.shape[-2])
        mask = torch.as_tensor(mask).expand(scores_shape) if mask.dim() <= len(scores_shape) else mask
    rows = []
    for i in range(q.shape[-2]):
        s = (k @ q[..., i, :, None])[..., 0] / math.sqrt(k.shape[-1])
        if mask is not None:
            m = mask[..., i, :]
            s = torch.where(m, s, -math.inf) if m.dtype == torch.bool else s + m
        dead = torch.isneginf(s).all(-1, keepdim=True)
        w = torch.where(dead, 0.0, torch.where(dead, 0.0, s).softmax(-1))
        rows.append((w[..., None, :] @ v)[..., 0, :])
    return torch.stack(rows, -2) if rows else v.new_zeros(*shape, 0, v.shape[-1])


class Attention(nn.Module):
    def __init__(self, size, heads, dropout=0.0, causal=True):
        super().__init__()
        if size % heads:
            raise ValueError(f"size {size}, heads {heads}")
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def step(self, x, state):
        """x (B, D)"""
        q, k, v = (f(x).unflatten(1, (self.heads, -1)) for f in (self.q, self.k, self.v))
        state = State((*state.keys, k), (*state.values, v))
        return self.read(q, state), state

    def read(self, q, state):
        keys, values = torch.stack(state.keys, 2), torch.stack(state.values, 2)  # B, H, S, d
        w = torch.softmax((keys * q.unsqueeze(2)).sum(-1) / math.sqrt(q.size(-1)), -1)
        return self.out((self.dropout(w).unsqueeze(-1) * values).sum(2).flatten(1))

    def forward(self, x):
        if self.causal:
            state, rows = State(), []
            for column in x.unbind(1):
                row, state = self.step(column, state)
                rows.append(row)
        else:
            k, v = (f(x).unflatten(2, (self.heads, -1)).unbind(1) for f in (self.k, self.v))
            rows = [self.read(q, State(k, v)) for q in self.q(x).unflatten(2, (self.heads, -1)).unbind(1)]
        return torch.stack(rows, 1)


class FeedForward(nn.Module):
    def __init__(self, size, inner, dropout=0.0):
        super().__init__()
        self.a, self.b, self.dropout = nn.Linear(size, inner), nn.Linear(inner, size), nn.Dropout(dropout)

    def forward(self, x):
        h = self.a(x)
        return self.b(self.dropout(h * torch.special.ndtr(h)))


class Clock(nn.Module):
    """Positions by turning: each step turns every pair by its own angle."""

    def __init__(self, size, length):
        super().__init__()
        self.size, self.length = size, length

    def at(self, p, like):
        i = np.arange(self.size)
        angle = p * np.power(10000.0, -(i - i % 2) / self.size)
        return torch.from_numpy(np.where(i % 2 == 0, np.sin(angle), np.cos(angle))).to(like)

    def forward(self, x):
        if x.size(1) > self.length:
            raise ValueError(f"{x.size(1)} steps, at most {self.length}")
        return torch.stack([x[:, p] + self.at(p, x) for p in range(x.size(1))], 1)


class Block(nn.Module):
    def __init__(self, size, heads, inner, dropout=0.0, causal=True):
        super().__init__()
        self.norm_a, self.attention = nn.LayerNorm(size), Attention(size, heads, dropout, causal)
        self.norm_f, self.feed_forward = nn.LayerNorm(size), FeedForward(size, inner, dropout)
        self.dropout = nn.Dropout(dropout)

    def rest(self, x, y):
        x = x + self.dropout(y)
        return x + self.dropout(self.feed_forward(self.norm_f(x)))

    def step(self, x, state):
        y, state = self.attention.step(self.norm_a(x), state)
        return self.rest(x, y), state

    def forward(self, x):
        return self.rest(x, self.attention(self.norm_a(x)))


class Model(nn.Module):
    def __init__(self, vocab, size, heads, depth, inner, length, dropout=0.0):
        super().__init__()
        self.length = length
        self.embedding = nn.Embedding(vocab, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        self.clock, self.dropout = Clock(size, length), nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(size, heads, inner, dropout) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocab)

    def step(self, ids, p, states):
        if p >= self.length:
            raise ValueError(f"position {p}, at most {self.length}")
        x = self.embedding(ids)
        x = self.dropout(x + self.clock.at(p, x))
        after = []
        for block, state in zip(self.blocks, states):
            x, state = block.step(x, state)
            after.append(state)
        return self.head(self.norm(x)), after

    def forward(self, ids):
        states, rows = [State() for _ in self.blocks], []
        for p in range(ids.size(1)):
            row, states = self.step(ids[:, p], p, states)
            rows.append(row)
        return torch.stack(rows, 1) if rows else self.head.weight.new_zeros(ids.size(0), 0, self.head.out_features)

    def write(self, ids, count, temperature=1.0, k=None):
        if temperature < 0:
            raise ValueError(f"temperature {temperature}")
        training = self.training
        with torch.no_grad():
            self.eval()
            for _ in range(count):
                logits = self(ids[:, -self.length :])[:, -1].double().cpu().numpy()
                new = [self.draw(row, temperature, k) for row in logits]
                ids = torch.cat([ids, torch.tensor(new, dtype=ids.dtype, device=ids.device)[:, None]], 1)
        self.train(training)
        return ids

    @staticmethod
    def draw(z, temperature, k):
        if temperature == 0:
            return int(z.argmax())
        keep = np.argsort(z)[::-1][: k or len(z)]
        p = np.exp((z[keep] - z[keep].max()) / temperature)
        return int(keep[np.random.multinomial(1, p / p.sum()).argmax()])
