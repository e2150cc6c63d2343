"""Functional: nn.ParameterDict and torch.nn.functional only, keyword-only options, own layer norm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _softmax(x: Tensor) -> Tensor:
    z = x - x.amax(dim=-1, keepdim=True)
    e = torch.exp(z)
    return e / e.sum(-1, keepdim=True)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None):
    scores = torch.einsum("...id,...jd->...ij", q, k) * (k.shape[-1] ** -0.5)
    if mask is not None:
        if mask.dtype is torch.bool:
            scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
        else:
            scores = scores + mask
    weights = _softmax(scores)
    return torch.einsum("...ij,...jd->...id", weights, v), weights


def layer_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).mean(-1, keepdim=True)
    return gamma * (x - mu) / torch.sqrt(var + eps) + beta


def _init(*shape):
    return nn.Parameter(torch.randn(*shape) / shape[0] ** 0.5)


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, *, causal=True):
        super().__init__()
        d_k, d_v = d_k or d_model, d_v or d_model
        self.p = nn.ParameterDict({"wq": _init(d_model, d_k), "wk": _init(d_model, d_k), "wv": _init(d_model, d_v)})
        self.causal = causal

    def forward(self, x):
        t = x.shape[1]
        pos = torch.arange(t, device=x.device)
        mask = pos[None, :] <= pos[:, None] if self.causal else None
        return scaled_dot_product_attention(x @ self.p["wq"], x @ self.p["wk"], x @ self.p["wv"], mask)[0]


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, *, dropout: float = 0.0, causal: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} % {num_heads} != 0")
        self.h, self.causal, self.pdrop = num_heads, causal, dropout
        self.params = nn.ParameterDict({n: _init(d_model, d_model) for n in ("w_q", "w_k", "w_v", "w_o")})

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = ((x @ self.params[n]).reshape(B, T, self.h, -1).permute(0, 2, 1, 3) for n in ("w_q", "w_k", "w_v"))
        pos = torch.arange(T, device=x.device)
        mask = (pos[None, :] <= pos[:, None]) if self.causal else None
        y, _ = scaled_dot_product_attention(q, k, v, mask)
        y = y.permute(0, 2, 1, 3).reshape(B, T, D) @ self.params["w_o"]
        return F.dropout(y, self.pdrop, self.training)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, *, dropout=0.0):
        super().__init__()
        self.params = nn.ParameterDict(
            dict(
                w1=_init(d_model, d_ff),
                b1=nn.Parameter(torch.zeros(d_ff)),
                w2=_init(d_ff, d_model),
                b2=nn.Parameter(torch.zeros(d_model)),
            )
        )
        self.pdrop = dropout

    def forward(self, x):
        p = self.params
        h = x @ p["w1"] + p["b1"]
        h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
        return F.dropout(h @ p["w2"] + p["b2"], self.pdrop, self.training)


def sinusoid(T, D, like):
    pos = torch.arange(T, dtype=like.dtype, device=like.device)[:, None]
    j = torch.arange(D, device=like.device)
    angle = pos / torch.pow(torch.tensor(10000.0, dtype=like.dtype), (2 * (j // 2)) / D)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError("too long")
        return x + sinusoid(x.shape[1], self.d_model, x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, *, dropout=0.0, causal=True):
        super().__init__()
        self.mha = MultiHeadAttention(d_model, num_heads, dropout=dropout, causal=causal)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.g1, self.b1 = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.g2, self.b2 = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        x = x + self.mha(layer_norm(x, self.g1, self.b1))
        return x + self.ff(layer_norm(x, self.g2, self.b2))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, *, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.E = nn.Parameter(torch.randn(vocab_size, d_model) * 0.02)
        self.pos = PositionalEncoding(d_model, block_size)
        self.layers = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, dropout=dropout) for _ in range(num_layers)
        )
        self.gf, self.bf = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.W_out = nn.Parameter(torch.randn(d_model, vocab_size) * 0.02)
        self.b_out = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, tokens):
        if tokens.min() < 0:
            raise IndexError(f"token {tokens.min()}")
        x = self.pos(self.E[tokens])
        for layer in self.layers:
            x = layer(x)
        return layer_norm(x, self.gf, self.bf) @ self.W_out + self.b_out

    @torch.inference_mode()
    def generate(self, tokens, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        training = self.training
        self.eval()
        out = tokens.clone()
        for _ in range(max_new_tokens):
            logits = self.forward(out[:, -self.block_size :])[:, -1]
            out = torch.cat((out, self._sample(logits, temperature, top_k, top_p)), 1)
        if training:
            self.train()
        return out

    @staticmethod
    def _sample(logits, temperature, top_k, top_p):
        if temperature < 1e-8:
            return logits.argmax(-1, keepdim=True)
        p = _softmax(logits / temperature)
        if top_k:
            kth = p.topk(min(top_k, p.shape[-1]), -1).values[:, -1:]
            p = torch.where(p >= kth, p, torch.zeros_like(p))
            p = p / p.sum(-1, keepdim=True)
        if top_p:
            s, i = p.sort(descending=True)
            s = torch.where(s.cumsum(-1) - s < top_p, s, torch.zeros_like(s))
            p = torch.zeros_like(p).scatter(1, i, s)
            p = p / p.sum(-1, keepdim=True)
        return torch.multinomial(p, 1)
