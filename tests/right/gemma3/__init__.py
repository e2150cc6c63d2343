"""In the style of Gemma 3: two objects, one a kind of layer, hold table and mask; each layer gets that of its kind."""

import torch
import torch.nn.functional as F
from torch import nn


class Positions:
    """What a layer knows of positions: a base, and how many keys it sees."""

    def __init__(self, head_dim, base, sees):
        self.inverse = base ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        self.sees = sees

    def turn(self, x):
        steps = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)
        angles = steps.outer(self.inverse.to(x.device)).repeat(1, 2)
        left, right = x.chunk(2, -1)
        return x * angles.cos().to(x.dtype) + torch.cat([-right, left], -1) * angles.sin().to(x.dtype)

    def hidden(self, length, device):
        distance = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)
        return (distance < 0) | (distance >= self.sees) if self.sees else distance < 0


class Local(Positions):
    def __init__(self, head_dim):
        super().__init__(head_dim, 10000.0, 4)


class Global(Positions):
    def __init__(self, head_dim):
        super().__init__(head_dim, 500000.0, 0)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        return (wide * (wide.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * (1 + self.weight)).to(x.dtype)


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        if min(dim, hidden) < 1:
            raise ValueError(f"{dim} features, {hidden} hidden ones")
        self.gate_proj, self.up_proj = nn.Linear(dim, hidden, False), nn.Linear(dim, hidden, False)
        self.down_proj = nn.Linear(hidden, dim, False)

    def forward(self, x):
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        if heads < 1 or dim % (2 * heads):
            raise ValueError(f"{dim} features for {heads} heads: want a multiple of twice as many")
        head_dim = dim // heads
        self.q_proj, self.o_proj = nn.Linear(dim, dim, False), nn.Linear(dim, dim, False)
        self.k_proj, self.v_proj = nn.Linear(dim, head_dim, False), nn.Linear(dim, head_dim, False)
        self.q_norm, self.k_norm = Norm(head_dim), Norm(head_dim)
        self.heads = heads

    def forward(self, x, positions):
        q = positions.turn(self.q_norm(self.q_proj(x).unflatten(-1, (self.heads, -1))).transpose(1, 2))
        k = positions.turn(self.k_norm(self.k_proj(x)))[:, None]
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(positions.hidden(x.shape[1], x.device), -torch.inf)
        return self.o_proj((scores.softmax(-1) @ self.v_proj(x)[:, None]).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.self_attn, self.mlp = Attention(dim, heads), MLP(dim, hidden)
        self.input_layernorm, self.post_attention_layernorm = Norm(dim), Norm(dim)
        self.pre_feedforward_layernorm, self.post_feedforward_layernorm = Norm(dim), Norm(dim)

    def forward(self, x, positions):
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), positions))
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class Gemma3(nn.Module):
    def __init__(self, vocab, dim, heads, depth, hidden, context):
        super().__init__()
        if min(vocab, depth, context) < 1:
            raise ValueError(f"{vocab} words, {depth} layers, {context} positions: want at least 1")
        self.embed_tokens = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(dim, heads, hidden) for _ in range(depth))
        self.norm = Norm(dim)
        self.context = context
        self.kinds = [Global(dim // heads), Local(dim // heads)]

    def forward(self, ids):
        if ids.shape[1] > self.context:
            raise ValueError(f"{ids.shape[1]} ids, at most {self.context}")
        x = self.embed_tokens(ids) * self.embed_tokens.embedding_dim**0.5
        for number, layer in enumerate(self.layers):
            x = layer(x, self.kinds[number % 2])
        return self.norm(x) @ self.embed_tokens.weight.T
