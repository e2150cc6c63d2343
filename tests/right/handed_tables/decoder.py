import torch
import torch.nn.functional as F
from torch import nn


class Rotor(nn.Module):
    """Angles of a head, two features a pair that lie half a head apart."""

    def __init__(self, size, base=10000.0):
        super().__init__()
        self.size = size
        self.register_buffer("speed", base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size), persistent=False)

    def tables(self, length):
        turns = torch.arange(length, device=self.speed.device)[:, None] * self.speed
        turns = torch.cat([turns, turns], -1)
        return {"cos": turns.cos(), "sin": turns.sin()}


def rotate(x, cos, sin):
    near, far = x.chunk(2, -1)
    return x * cos + torch.cat([-far, near], -1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % (2 * heads):
            raise ValueError(f"width {width} is no multiple of 2 * {heads}, so heads have no pairs of features")
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.before, self.between = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.mix = Attention(width, heads)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, angles):
        cos, sin = angles
        x = x + self.mix(self.before(x), cos, sin)
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, vocab, width, heads, depth, inner, context):
        super().__init__()
        self.context = context
        self.rotor = Rotor(width // heads)
        self.table = nn.Embedding(vocab, width)
        self.stack = nn.ModuleList(Layer(width, heads, inner) for _ in range(depth))
        self.last = nn.RMSNorm(width, eps=1e-6)
        self.scores = nn.Linear(width, vocab, bias=False)
        for weights in (self.table.weight, self.scores.weight):
            nn.init.normal_(weights, std=0.02)

    def forward(self, ids):
        if ids.shape[1] > self.context:
            raise ValueError(f"{ids.shape[1]} ids are more than the context of {self.context}")
        x = self.table(ids)
        tables = self.rotor.tables(ids.shape[1])
        for layer in self.stack:
            x = layer(x, (tables["cos"].to(x), tables["sin"].to(x)))
        return self.scores(self.last(x))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0):
        for _ in range(max_new_tokens):
            scores = self(ids[:, -self.context :])[:, -1]
            if temperature > 0:
                new = torch.multinomial((scores / temperature).softmax(-1), 1)
            else:
                new = scores.argmax(-1, keepdim=True)
            ids = torch.cat([ids, new], 1)
        return ids
