"""One key/value head, rotation as block-diagonal matrices, a gated tanh GELU, embeddings through a one-hot product."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    width: int
    heads: int
    inner: int = 0
    context: int = 0
    vocabulary: int = 0
    depth: int = 0
    base: float = 10_000.0

    @property
    def head(self):
        return 2 * math.ceil(self.width / self.heads / 2)


def attention(q, k, v, mask=None):
    s = torch.einsum("...qd,...kd->...qk", q, k).mul(k.shape[-1] ** -0.5)
    if mask is not None and mask.dtype is torch.bool:
        s = s.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        s = s + mask
    s = s - s.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    p = s.exp()
    return torch.einsum(
        "...qk,...kd->...qd", p / p.sum(-1, keepdim=True).clamp_min(1e-30 if p.dtype != torch.float16 else 1e-7), v
    )


def rotation(t, d, base, like):
    angle = torch.outer(torch.arange(t, dtype=torch.float64), base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d))
    c, s = angle.cos(), angle.sin()
    small = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # t, d/2, 2, 2
    return torch.stack([torch.block_diag(*row) for row in small]).to(like) if t else like.new_zeros(0, d, d)


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.scale, eps=1e-6)


class Attention(nn.Module):
    def __init__(self, shape, causal=True, p=0.0):
        super().__init__()
        if shape.heads < 1 or shape.width < 1:
            raise ValueError(f"{shape}")
        self.shape, self.causal, self.p = shape, causal, p
        self.q = nn.Parameter(torch.randn(shape.heads, shape.head, shape.width) / shape.width**0.5)
        self.kv = nn.Parameter(torch.randn(2, shape.head, shape.width) / shape.width**0.5)
        self.o = nn.Parameter(torch.randn(shape.heads, shape.head, shape.width) / (shape.heads * shape.head) ** 0.5)

    def forward(self, x):
        k, v = torch.einsum("sdm,btm->sbtd", self.kv, x)
        q = torch.einsum("hdm,btm->bhtd", self.q, x)
        turn = rotation(x.shape[1], self.shape.head, self.shape.base, x)
        q, k = torch.einsum("tij,bhtj->bhti", turn, q), torch.einsum("tij,btj->bti", turn, k)
        s = torch.einsum("bhti,bsi->bhts", q, k) / math.sqrt(self.shape.head)
        if self.causal:
            n = torch.arange(x.shape[1], device=x.device)
            s = torch.where(n[:, None] >= n, s, -torch.inf)
        return torch.einsum("bhts,bsd,hdm->btm", F.dropout(s.softmax(-1), self.p, self.training), v, self.o)


class Gated(nn.Module):
    def __init__(self, width, inner, p=0.0):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, inner, 2) / width**0.5)
        self.down = nn.Parameter(torch.randn(inner, width) / inner**0.5)
        self.p = p

    def forward(self, x):
        gate, value = torch.einsum("...m,mfs->s...f", x, self.up)
        return F.dropout(F.gelu(gate, approximate="tanh") * value, self.p, self.training) @ self.down


class Layer(nn.Module):
    def __init__(self, shape, causal=True, p=0.0):
        super().__init__()
        self.att, self.mlp = Attention(shape, causal, p), Gated(shape.width, shape.inner, p)
        self.n1, self.n2 = Norm(shape.width), Norm(shape.width)
        self.p = p

    def forward(self, x):
        x = x + F.dropout(self.att(self.n1(x)), self.p, self.training)
        return x + F.dropout(self.mlp(self.n2(x)), self.p, self.training)


class Model(nn.Module):
    def __init__(self, shape, p=0.0):
        super().__init__()
        self.shape, self.p = shape, p
        self.table = nn.Parameter(torch.randn(shape.vocabulary, shape.width) * 0.02)
        self.layers = nn.ModuleList(Layer(shape, p=p) for _ in range(shape.depth))
        self.norm = Norm(shape.width)

    def forward(self, ids):
        if ids.shape[1] > self.shape.context:
            raise ValueError(f"{ids.shape[1]} ids in a context of {self.shape.context}")
        x = F.one_hot(ids, len(self.table)).to(self.table.dtype) @ self.table
        x = F.dropout(x * self.shape.width**0.5, self.p, self.training)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.table.T


@torch.inference_mode()
def continue_(model, ids, n, temperature=1.0, k=None, p=None):
    if temperature < 0 or (k is not None and k < 1) or (p is not None and not 0 < p <= 1):
        raise ValueError(f"temperature {temperature}, k {k}, p {p}")
    modes = {m: m.training for m in model.modules()}
    model.eval()
    try:
        for _ in range(n):
            z = model(ids[:, -model.shape.context :])[:, -1]
            z, order = z.sort(descending=True, stable=True)
            if temperature:
                w = (z[:, :k] / temperature).softmax(-1)
                if p is not None:
                    w = w * (w.cumsum(-1) - w < p)
                pick = torch.multinomial(w, 1)
            else:
                pick = torch.zeros_like(order[:, :1])
            ids = torch.cat([ids, order.gather(1, pick)], 1)
        return ids.clone()
    finally:
        for m, mode in modes.items():
            m.training = mode
