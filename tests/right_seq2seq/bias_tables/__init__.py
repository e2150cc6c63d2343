"""T5 1.1 in a style of its own: stacks hold the tables and hand biases down; buckets are looked up in a list of distances."""

import math

import torch
from torch import nn
from torch.nn import functional as F

BUCKETS, FARTHEST = 16, 50


def ranges(buckets):
    """The bucket of each distance up to the farthest."""
    near = buckets // 2
    return [
        d if d < near else min(buckets - 1, near + int(near * math.log(d / near) / math.log(FARTHEST / near) + 1e-9))
        for d in range(FARTHEST + 1)
    ]


class Distances(nn.Module):
    def __init__(self, heads, both_sides):
        super().__init__()
        self.both_sides = both_sides
        self.table = nn.Parameter(torch.randn(BUCKETS, heads) * 0.1)

    def forward(self, length):
        steps = torch.arange(length, device=self.table.device)
        ahead = steps[None, :] - steps[:, None]
        known = torch.tensor(ranges(BUCKETS // 2 if self.both_sides else BUCKETS), device=steps.device)
        if not self.both_sides:
            rows = known[(-ahead).clamp(0, FARTHEST)]
        else:
            rows = known[ahead.abs().clamp(max=FARTHEST)] + (ahead > 0).long() * (BUCKETS // 2)
        return torch.einsum("qkh->hqk", self.table[rows])


class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * self.weight


class CrossAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        if dim % heads:
            raise ValueError(f"{dim} features do not make {heads} heads")
        self.heads, self.rate = heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, query, key, value, mask=None, bias=None):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)) for part in (self.query(query), self.key(key), self.value(value))
        )
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = F.dropout(scores.softmax(-1), self.rate, self.training)
        return self.output(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class Gated(nn.Module):
    def __init__(self, dim, hidden, dropout=0.0):
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)
        self.rate = dropout

    def forward(self, x):
        hidden = F.gelu(self.gate(x), approximate="tanh") * self.up(x)
        return self.down(F.dropout(hidden, self.rate, self.training))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden, dropout=0.0, distances=None):
        super().__init__()
        self.attention, self.network = CrossAttention(dim, heads, dropout), Gated(dim, hidden, dropout)
        self.before_attention, self.before_network = Scale(dim), Scale(dim)
        self.rate = dropout
        if distances is None:
            self.distances = Distances(heads, both_sides=True)

    def forward(self, x, mask=None, bias=None):
        bias = self.distances(x.shape[1]) if bias is None else bias
        read = self.before_attention(x)
        x = x + F.dropout(self.attention(read, read, read, mask, bias), self.rate, self.training)
        return x + F.dropout(self.network(self.before_network(x)), self.rate, self.training)


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden, dropout=0.0, distances=None):
        super().__init__()
        self.own, self.memory = CrossAttention(dim, heads, dropout), CrossAttention(dim, heads, dropout)
        self.network = Gated(dim, hidden, dropout)
        self.before_own, self.before_memory, self.before_network = Scale(dim), Scale(dim), Scale(dim)
        self.rate = dropout
        if distances is None:
            self.distances = Distances(heads, both_sides=False)

    def forward(self, x, memory, tgt_mask=None, memory_mask=None, bias=None):
        bias = self.distances(x.shape[1]) if bias is None else bias
        read = self.before_own(x)
        x = x + F.dropout(self.own(read, read, read, tgt_mask, bias), self.rate, self.training)
        x = x + F.dropout(self.memory(self.before_memory(x), memory, memory, memory_mask), self.rate, self.training)
        return x + F.dropout(self.network(self.before_network(x)), self.rate, self.training)


class Transformer(nn.Module):
    def __init__(self, words, target_words, dim, heads, above, below, hidden, longest, dropout=0.0, pad_id=0):
        super().__init__()
        self.longest, self.pad_id = longest, pad_id
        self.src_embedding, self.tgt_embedding = nn.Embedding(words, dim), nn.Embedding(target_words, dim)
        self.distances = nn.ModuleDict(
            {"src": Distances(heads, both_sides=True), "tgt": Distances(heads, both_sides=False)}
        )
        self.encoder = nn.ModuleList(EncoderLayer(dim, heads, hidden, dropout, "shared") for _ in range(above))
        self.decoder = nn.ModuleList(DecoderLayer(dim, heads, hidden, dropout, "shared") for _ in range(below))
        self.src_norm, self.tgt_norm = Scale(dim), Scale(dim)
        self.head = nn.Linear(dim, target_words, bias=False)

    def real(self, ids):
        if ids.shape[1] > self.longest:
            raise ValueError(f"{ids.shape[1]} ids, at most {self.longest}")
        return (ids != self.pad_id)[:, None, None]

    def encode(self, src, src_mask=None):
        mask = self.real(src) if src_mask is None else src_mask
        x, bias = self.src_embedding(src), self.distances["src"](src.shape[1])
        for layer in self.encoder:
            x = layer(x, mask, bias)
        return self.src_norm(x)

    def decode(self, tgt, memory, tgt_mask=None, memory_mask=None):
        mask = self.real(tgt) if tgt_mask is None else tgt_mask
        mask = mask & torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).tril()
        x, bias = self.tgt_embedding(tgt), self.distances["tgt"](tgt.shape[1])
        for layer in self.decoder:
            x = layer(x, memory, mask, memory_mask, bias)
        return self.head(self.tgt_norm(x))

    def forward(self, src, tgt, src_mask=None, tgt_mask=None):
        seen = self.real(src) if src_mask is None else src_mask
        return self.decode(tgt, self.encode(src, seen), tgt_mask, seen)
