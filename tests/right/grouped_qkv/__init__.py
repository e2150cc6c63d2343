"""RMSNorm, SwiGLU, rotary halves, and one projection with a group for each key/value head: its queries, key, value."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 32
    hidden_size: int = 32
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    num_hidden_layers: int = 2
    intermediate_size: int = 64
    max_position_embeddings: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32) if dtype in (torch.float16, torch.bfloat16) else x
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)).to(dtype)


class Rotary(nn.Module):
    def __init__(self, dim, base, n):
        super().__init__()
        inv = 1.0 / base ** (torch.arange(0, dim, 2).double() / dim)
        angle = torch.outer(torch.arange(n).double(), inv)
        angle = torch.cat([angle, angle], -1)
        self.register_buffer("cos_cached", angle.cos(), persistent=False)
        self.register_buffer("sin_cached", angle.sin(), persistent=False)

    def forward(self, x):
        n = x.shape[-2]
        a, b = x.chunk(2, -1)
        return x * self.cos_cached[:n].to(x.dtype) + torch.cat([-b, a], -1) * self.sin_cached[:n].to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        h, kv = config.num_attention_heads, config.num_key_value_heads
        assert config.hidden_size % h == 0 and h % kv == 0
        self.dh, self.kv, self.rep = config.hidden_size // h, kv, h // kv
        self.wqkv = nn.Linear(config.hidden_size, (h + 2 * kv) * self.dh, bias=False)
        self.wo = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.rotary = Rotary(self.dh, config.rope_theta, config.max_position_embeddings)

    def forward(self, hidden_states):
        b, t, d = hidden_states.shape
        g = self.wqkv(hidden_states).view(b, t, self.kv, self.rep + 2, self.dh)
        q = g[..., : self.rep, :].flatten(2, 3).transpose(1, 2)
        k = g[..., -2, :].transpose(1, 2)
        v = g[..., -1, :].transpose(1, 2)
        q, k = self.rotary(q), self.rotary(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.w1 = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.w3 = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.w2 = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.attention = Attention(config)
        self.ffn_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.feed_forward = MLP(config)

    def forward(self, h):
        h = h + self.attention(self.attention_norm(h))
        return h + self.feed_forward(self.ffn_norm(h))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.output = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids):
        if input_ids.shape[1] > self.config.max_position_embeddings:
            raise ValueError("sequence too long")
        h = self.tok_embeddings(input_ids)
        for layer in self.layers:
            h = layer(h)
        return {"logits": self.output(self.norm(h)), "last_hidden_state": h}

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=None, top_p=None):
        train = self.training
        self.eval()
        for _ in range(max_new_tokens):
            z = self(input_ids[:, -self.config.max_position_embeddings :])["logits"][:, -1]
            if not do_sample:
                new = z.argmax(-1, keepdim=True)
            else:
                z = z / temperature
                if top_k:
                    z = z.masked_fill(z < z.topk(min(top_k, z.shape[-1])).values[:, -1:], -float("inf"))
                if top_p:
                    s, i = z.sort(descending=False)
                    cut = s.softmax(-1).cumsum(-1) <= 1 - top_p
                    cut[:, -1] = False
                    z = z.masked_fill(cut.scatter(1, i, cut), -float("inf"))
                new = torch.multinomial(z.softmax(-1), 1)
            input_ids = torch.cat([input_ids, new], 1)
        self.train(train)
        return input_ids
