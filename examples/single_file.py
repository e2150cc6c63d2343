"""A whole tiny transformer in one file: einsum for every product, one head after the other."""

import math

import torch
from torch import einsum, nn


def glorot(*shape):
    return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-2]))


def positive(**sizes):
    for name, size in sizes.items():
        if size <= 0:
            raise ValueError(f"{name} must be positive, got {size}")


def scaled_dot_product_attention(q, k, v, mask=None):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has width {q.shape[-1]}, k has width {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"k has length {k.shape[-2]}, v has length {v.shape[-2]}")
    scores = einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        if not (mask.dtype == torch.bool or mask.is_floating_point()):
            raise TypeError(f"the mask is {mask.dtype}, expected bool or float")
        bias = torch.where(mask, 0.0, -math.inf) if mask.dtype == torch.bool else mask
        scores = scores + bias.to(scores.dtype).expand(scores.shape)
    # Softmax by hand: the best key counts 1, so a sum below 1 is that of a row without any key, which gives 0.
    top = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - top)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1)
    return einsum("...qk,...kd->...qd", weights, v)


def tril(x):
    length = x.shape[1]
    positions = torch.arange(length, device=x.device)
    return positions[:, None] >= positions


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        d_k, d_v = (d_model if d is None else d for d in (d_k, d_v))
        positive(d_model=d_model, d_k=d_k, d_v=d_v)
        self.causal = causal
        self.query, self.key = glorot(d_model, d_k), glorot(d_model, d_k)
        self.value = glorot(d_model, d_v)

    def forward(self, x):
        q, k, v = (einsum("btm,md->btd", x, w) for w in (self.query, self.key, self.value))
        return scaled_dot_product_attention(q, k, v, tril(x) if self.causal else None)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        positive(d_model=d_model, num_heads=num_heads)
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
        width = d_model // num_heads
        self.causal = causal
        self.query, self.key, self.value = (glorot(num_heads, d_model, width) for _ in range(3))
        self.output = glorot(num_heads, width, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        mask = tril(x) if self.causal else None
        y = torch.zeros_like(x)
        for wq, wk, wv, wo in zip(self.query, self.key, self.value, self.output, strict=True):
            q, k, v = (einsum("btm,md->btd", x, w) for w in (wq, wk, wv))
            y = y + einsum("btd,dm->btm", scaled_dot_product_attention(q, k, v, mask), wo)
        return self.dropout(y)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        positive(d_model=d_model, d_ff=d_ff)
        self.w1, self.b1 = glorot(d_model, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.w2, self.b2 = glorot(d_ff, d_model), nn.Parameter(torch.zeros(d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = einsum("...m,mf->...f", x, self.w1) + self.b1
        hidden = hidden / 2 * (1 + torch.erf(hidden / math.sqrt(2)))
        return einsum("...f,fm->...m", self.dropout(hidden), self.w2) + self.b2


class LayerNorm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return self.gamma * (x - mean) * torch.rsqrt(variance + 1e-5) + self.beta


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        positive(d_model=d_model, max_len=max_len)
        rows = [[self.entry(pos, j, d_model) for j in range(d_model)] for pos in range(max_len)]
        self.register_buffer("table", torch.tensor(rows, dtype=torch.float64), persistent=False)

    @staticmethod
    def entry(pos, j, d_model):
        angle = pos / 10000 ** ((j - j % 2) / d_model)
        return math.cos(angle) if j % 2 else math.sin(angle)

    def forward(self, x):
        if x.dim() != 3 or x.shape[2] != self.table.shape[1] or x.shape[1] > len(self.table):
            raise ValueError(f"x has shape {tuple(x.shape)}, the table has {tuple(self.table.shape)}")
        return x + self.table[: x.shape[1]].to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.norm1, self.attention = LayerNorm(d_model), MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.norm2, self.feed_forward = LayerNorm(d_model), FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        middle = self.attention(self.norm1(x)) + x
        return self.feed_forward(self.norm2(middle)) + middle


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        positive(vocab_size=vocab_size)
        if num_layers < 0:
            raise ValueError(f"num_layers must not be negative, got {num_layers}")
        self.vocab_size, self.block_size = vocab_size, block_size
        self.embedding = nn.Parameter(torch.randn(vocab_size, d_model))
        self.positional = PositionalEncoding(d_model, block_size)
        layers = [TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)]
        self.layers = nn.Sequential(*layers)
        self.final_norm = LayerNorm(d_model)
        self.unembed = nn.Parameter(torch.randn(d_model, vocab_size) * 0.02)
        self.unembed_bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids):
        if ids.is_floating_point() or ids.dim() != 2:
            raise TypeError(f"ids are {ids.dtype} of shape {tuple(ids.shape)}, expected integers (B, T)")
        if ((ids < 0) | (ids >= self.vocab_size)).any():
            raise IndexError(f"an id is not in 0 … {self.vocab_size - 1}")
        x = self.positional(self.embedding[ids.long()])
        x = self.final_norm(self.layers(x))
        return einsum("btm,mv->btv", x, self.unembed) + self.unembed_bias

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if not (idx.shape[1] and max_new_tokens >= 0 and temperature >= 0):
            raise ValueError(f"prompt {idx.shape[1]} long, {max_new_tokens} new, temperature {temperature}")
        if (top_k is not None and top_k < 1) or not (top_p is None or 0 < top_p <= 1):
            raise ValueError(f"top_k {top_k} or top_p {top_p} out of range")
        modes = [(m, m.training) for m in self.modules()]
        self.eval()
        try:
            with torch.inference_mode():
                for _ in range(max_new_tokens):
                    logits = self(idx[:, -self.block_size :])[:, -1]
                    new = [self.draw(row, temperature, top_k, top_p) for row in logits]
                    idx = torch.cat([idx, idx.new_tensor(new)[:, None]], dim=1)
        finally:
            for module, mode in modes:
                module.training = mode
        return idx

    @staticmethod
    def draw(row, temperature, top_k, top_p):
        if temperature == 0:
            return int(row.argmax())
        ranked = sorted(range(len(row)), key=lambda i: -row[i].item())[:top_k]
        probabilities = torch.softmax((row[ranked] - row.max()).double() / temperature, dim=0).tolist()
        kept, total = [], 0.0
        for p in probabilities:
            kept.append(p)
            total += p
            if top_p is not None and total >= top_p:
                break
        return ranked[int(torch.multinomial(torch.tensor(kept), 1))]
