"""Gemma-2-like: RMSNorm with 1 + w before and after each branch, GeGLU, soft caps, embeddings times √d, tied head."""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Config:
    vocab_size: int = 256
    hidden_size: int = 64
    num_layers: int = 2
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 24
    intermediate_size: int = 192
    max_position: int = 128
    rms_norm_eps: float = 1e-6
    rope_base: float = 10000.0
    attn_logit_softcap: float | None = 50.0
    final_logit_softcap: float | None = 30.0
    qk_norm: bool = False


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight)).to(x.dtype)


def softcap(x, cap):
    return x if cap is None else cap * torch.tanh(x / cap)


def rope(x, base):
    """x (B, T, H, dh): feature i turns with feature i + dh/2."""
    half = x.shape[-1] // 2
    freq = base ** -(torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[1], device=x.device, dtype=torch.float64)[:, None] * freq
    cos, sin = angle.cos().to(x.dtype)[:, None, :], angle.sin().to(x.dtype)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        if c.num_heads % c.num_kv_heads:
            raise ValueError("num_heads must be a multiple of num_kv_heads")
        if c.head_dim % 2:
            raise ValueError("head_dim must be even")
        self.c = c
        self.qkv_proj = nn.Linear(c.hidden_size, (c.num_heads + 2 * c.num_kv_heads) * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.num_heads * c.head_dim, c.hidden_size, bias=False)
        self.query_norm = RMSNorm(c.head_dim, c.rms_norm_eps) if c.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(c.head_dim, c.rms_norm_eps) if c.qk_norm else nn.Identity()

    def forward(self, x):
        c, (b, t, _) = self.c, x.shape
        q, k, v = self.qkv_proj(x).view(b, t, -1, c.head_dim).split([c.num_heads, c.num_kv_heads, c.num_kv_heads], dim=2)
        q, k = rope(self.query_norm(q), c.rope_base), rope(self.key_norm(k), c.rope_base)
        q = q.view(b, t, c.num_kv_heads, -1, c.head_dim)  # query head h uses key head h // group
        scores = torch.einsum("btghd,bsgd->bghts", q, k) * c.head_dim**-0.5
        scores = softcap(scores, c.attn_logit_softcap)
        past = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~past, -math.inf)
        y = torch.einsum("bghts,bsgd->btghd", scores.softmax(-1), v)
        return self.o_proj(y.reshape(b, t, -1))


class MLP(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), MLP(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.pre_feedforward_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_feedforward_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x):
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x)))
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class CausalLM(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.embedder = nn.Embedding(c.vocab_size, c.hidden_size)
        nn.init.normal_(self.embedder.weight, std=0.02)
        self.layers = nn.ModuleList(DecoderLayer(c) for _ in range(c.num_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, ids):
        if ids.shape[1] > self.c.max_position:
            raise ValueError(f"at most {self.c.max_position} ids")
        x = self.embedder(ids) * math.sqrt(self.c.hidden_size)
        for layer in self.layers:
            x = layer(x)
        return softcap(self.norm(x) @ self.embedder.weight.T, self.c.final_logit_softcap)
