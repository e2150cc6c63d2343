"""Raw parameters with a head axis, queries, keys and values stacked in one; einsum throughout."""

import numpy as np
import torch
from torch import nn


def init(*shape, fan_in):
    return nn.Parameter(torch.empty(*shape).uniform_(-1, 1) * fan_in**-0.5)


def scaled_dot_product_attention(q, k, v, mask=None):
    assert q.shape[-1] == k.shape[-1], f"q is {q.shape[-1]} wide, k is {k.shape[-1]}"
    assert k.shape[-2] == v.shape[-2], f"k has {k.shape[-2]} rows, v has {v.shape[-2]}"
    s = torch.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    if mask is not None:
        assert mask.dim() <= s.dim(), f"a mask of {mask.dim()} axes for scores of {s.dim()}"
        if mask.dtype is torch.bool:
            s = s.masked_fill(~mask.expand_as(s), -torch.inf)
        elif torch.is_floating_point(mask):
            s = s + mask.to(s.dtype).expand_as(s)
        else:
            raise TypeError(f"no masks of {mask.dtype}")
    blind = (s == -torch.inf).all(-1, keepdim=True)
    p = s.masked_fill(blind, 0).softmax(-1)
    return torch.einsum("...ij,...jd->...id", p, v)  # a blind query sees the mean


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        width, rest = divmod(d_model, num_heads) if num_heads > 0 else (0, 1)
        if rest:
            raise ValueError(f"cannot split {d_model} features among {num_heads} heads")
        self.causal = causal
        self.qkv = init(3, num_heads, d_model, width, fan_in=d_model)
        self.out = init(num_heads, width, d_model, fan_in=d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, m = x.shape
        q, k, v = torch.einsum("btm,shmd->sbhtd", x, self.qkv)
        i = torch.arange(t, device=x.device)
        y = scaled_dot_product_attention(q, k, v, i[None, :] <= i[:, None] if self.causal else None)
        return self.drop(torch.einsum("bhtd,hdm->btm", y, self.out))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * self.gain + self.shift


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        freq = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
        z = np.exp(1j * np.outer(np.arange(max_len), freq))  # imaginary part: sine, real part: cosine
        table = np.stack([z.imag, z.real], axis=-1).reshape(max_len, -1)[:, :d_model]
        self.register_buffer("pe", torch.tensor(table), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.max_len or x.shape[2] != self.d_model:
            raise ValueError(f"got {tuple(x.shape)}, made for {self.max_len} x {self.d_model}")
        return x + self.pe[: x.shape[1]].type_as(x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.ln_a, self.ln_b = Norm(d_model), Norm(d_model)
        self.mha = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.w_in, self.b_in = init(d_model, d_ff, fan_in=d_model), nn.Parameter(torch.zeros(d_ff))
        self.w_out, self.b_out = init(d_ff, d_model, fan_in=d_ff), nn.Parameter(torch.zeros(d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.mha(self.ln_a(x))
        h = torch.einsum("btm,mf->btf", self.ln_b(x), self.w_in) + self.b_in
        h = 0.5 * h * (1 + torch.special.erf(h * 0.5**0.5))
        return x + self.drop(torch.einsum("btf,fm->btm", h, self.w_out) + self.b_out)


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed = nn.Embedding(vocab_size, d_model)
        self.pe = PositionalEncoding(d_model, block_size)
        self.blocks = nn.Sequential(*(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)))
        self.ln_f = Norm(d_model)
        self.unembed, self.unembed_b = init(d_model, vocab_size, fan_in=d_model), nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids):
        h = self.ln_f(self.blocks(self.pe(self.embed(ids))))
        return torch.einsum("btm,mv->btv", h, self.unembed) + self.unembed_b

    @torch.inference_mode()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None):
        if not (ids.shape[1] > 0 and max_new_tokens >= 0 and temperature >= 0 and (top_k is None or top_k > 0)):
            raise ValueError("empty prompt, or an option out of range")
        before = [m.training for m in self.modules()]
        self.eval()
        try:
            buffer = torch.cat([ids, ids.new_zeros(len(ids), max_new_tokens)], 1)
            for t in range(ids.shape[1], buffer.shape[1]):
                logits = self(buffer[:, max(0, t - self.block_size) : t])[:, -1]
                best = logits.topk(min(top_k or logits.shape[1], logits.shape[1]))
                if temperature == 0:
                    pick = torch.zeros(len(ids), 1, dtype=torch.long, device=ids.device)
                else:  # the Gumbel trick: the largest of log-probability plus noise is a sample
                    noise = -torch.empty_like(best.values).exponential_().log()
                    pick = (best.values / temperature + noise).argmax(1, keepdim=True)
                buffer[:, t] = best.indices.gather(1, pick)[:, 0]
        finally:
            for m, mode in zip(self.modules(), before):
                m.training = mode
        return buffer
