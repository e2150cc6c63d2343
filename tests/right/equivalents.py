"""Equivalent rewrites: a constant at all allowed places, an inverted mask, log space, positions in two steps, heads interleaved."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    dots = torch.tensordot(q, k, dims=([-1], [-1])) if q.dim() == 2 else (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1)
    scores = dots / math.sqrt(q.size(-1))
    if mask is not None:
        if mask.dtype == torch.bool:
            hide = torch.logical_not(mask)
            scores = scores + 1.0  # the same for all allowed places
            scores = scores.masked_fill(hide, -1e9)
        else:
            scores = scores + mask.to(scores)
    scores = scores - scores.amax(-1, keepdim=True)
    scores = scores - scores.amax(-1, keepdim=True)
    logp = scores - torch.logsumexp(scores, -1, keepdim=True)
    return logp.exp() @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model {d_model} / num_heads {num_heads}")
        self.h, self.dh, self.causal = num_heads, d_model // num_heads, causal
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)
        self.no_drop = nn.Dropout(0.0)

    def forward(self, x):
        b, t, d = x.shape
        # heads interleaved: feature j belongs to head j % h
        q, k, v = (
            self.no_drop(w(x)).view(b, t, self.dh, self.h).permute(0, 3, 1, 2) for w in (self.wq, self.wk, self.wv)
        )
        hide = torch.triu(torch.ones(t, t, device=x.device), diagonal=1).to(torch.bool)
        y = scaled_dot_product_attention(q, k, v, ~hide if self.causal else None)
        y = y.permute(0, 2, 3, 1).reshape(b, t, d)
        return self.drop(self.wo(y))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.up(x)
        h = h * torch.distributions.Normal(0.0, 1.0).cdf(h)
        return self.drop(self.down(h))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model = d_model
        self.max_len = max_len

    def forward(self, x):
        assert x.size(1) <= self.max_len, (x.size(1), self.max_len)
        pos = torch.arange(x.size(1), device=x.device, dtype=torch.float64)
        freq = 10000.0 ** (-torch.arange(0, self.d_model, 2, device=x.device, dtype=torch.float64) / self.d_model)
        z = torch.polar(pos.new_ones(1), pos[:, None] * freq)
        sines = x.new_zeros(x.size(1), self.d_model)
        cosines = torch.zeros_like(sines)
        sines[:, 0::2] = z.imag.to(x.dtype)
        cosines[:, 1::2] = z.real[:, : self.d_model // 2].to(x.dtype)
        x = x + sines
        return x + cosines


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return torch.addcmul(self.shift, (x - mean) * (var + 1e-5).rsqrt(), self.scale)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.sublayers = nn.ModuleList(
            [MultiHeadAttention(d_model, num_heads, dropout, causal), FeedForward(d_model, d_ff, dropout)]
        )
        self.norms = nn.ModuleList([Norm(d_model), Norm(d_model)])

    def forward(self, x):
        for f, n in zip(self.sublayers, self.norms):
            out = f(n(x))
            out += x
            x = out
        return x


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.vocab_size, self.block_size = vocab_size, block_size
        self.emb = nn.Linear(vocab_size, d_model, bias=False)
        self.pe = PositionalEncoding(d_model, block_size)
        for i in range(num_layers):
            self.add_module(f"block{i}", TransformerBlock(d_model, num_heads, d_ff, dropout))
        self.num_layers = num_layers
        self.ln = Norm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        one_hot = nn.functional.one_hot(idx.long(), self.vocab_size).to(self.emb.weight.dtype)
        x = self.pe(self.emb(one_hot))
        for i in range(self.num_layers):
            x = getattr(self, f"block{i}")(x)
        return self.unembed(self.ln(x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        was = self.training
        self.eval()
        n, t = idx.shape
        out = idx.new_zeros(n, t + max_new_tokens)
        out[:, :t] = idx
        for i in range(t, t + max_new_tokens):
            z = self(out[:, max(0, i - self.block_size) : i])[:, -1]
            out[:, i] = self.choose(z, temperature, top_k, top_p)
        self.train(was)
        return out

    def choose(self, z, temperature, top_k, top_p):
        if temperature == 0:
            return z.argmax(1)
        p = (z / temperature).softmax(1)
        s, i = torch.sort(p, dim=1, descending=True, stable=True)
        keep = torch.ones_like(s, dtype=torch.bool)
        if top_k is not None:
            keep[:, top_k:] = False
            s = s * keep / (s * keep).sum(1, keepdim=True)
        if top_p is not None:
            keep &= (torch.cumsum(s, 1) - s) < top_p
        s = s * keep
        return i.gather(1, torch.multinomial(s / s.sum(1, keepdim=True), 1)).squeeze(1)
