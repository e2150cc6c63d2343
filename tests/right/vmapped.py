"""Written for one sequence, as in JAX; torch.vmap adds the batch, and heads are another vmap."""

import math
from functools import partial

import torch
from torch import nn, vmap


def attend_one(q, k, v, visible):
    s = q @ k.T / math.sqrt(q.shape[-1])
    s = torch.where(visible, s, -torch.inf)
    return torch.softmax(s, -1) @ v


def scaled_dot_product_attention(q, k, v, mask=None):
    s = torch.tensordot(q, k, ([-1], [-1])) if q.ndim == 2 and k.ndim == 2 else q @ k.swapaxes(-1, -2)
    s = s / math.sqrt(q.shape[-1])
    if mask is not None:
        s = torch.where(mask, s, -torch.inf) if mask.dtype == torch.bool else s + mask
    if s.shape[-2:] != (q.shape[-2], k.shape[-2]):
        raise ValueError(f"scores {tuple(s.shape)}")
    w = torch.nan_to_num(torch.softmax(s, -1), nan=0.0) if mask is not None else torch.softmax(s, -1)
    return w @ v


class Dense(nn.Module):
    def __init__(self, fan_in, fan_out, bias=True):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(fan_in, fan_out) / math.sqrt(fan_in))
        self.bias = nn.Parameter(torch.zeros(fan_out)) if bias else None

    def forward(self, x):
        y = x @ self.kernel
        return y if self.bias is None else y + self.bias


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model=} {num_heads=}")
        self.num_heads, self.causal = num_heads, causal
        self.query, self.key, self.value, self.out = (Dense(d_model, d_model, bias=False) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def one(self, x, visible):
        split = lambda y: y.unflatten(-1, (self.num_heads, -1)).movedim(-2, 0)
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if self.training and self.drop.p:
            s = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~visible, -torch.inf)
            y = self.drop(s.softmax(-1)) @ v
        else:
            y = vmap(partial(attend_one, visible=visible))(q, k, v)
        return self.out(y.movedim(0, -2).flatten(-2))

    def forward(self, x):
        t = x.shape[-2]
        visible = torch.ones(t, t, dtype=torch.bool, device=x.device)
        visible = visible.tril() if self.causal else visible
        return vmap(partial(self.one, visible=visible), randomness="different")(x)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.wi, self.wo, self.drop = Dense(d_model, d_ff), Dense(d_ff, d_model), nn.Dropout(dropout)

    def forward(self, x):
        return self.wo(self.drop(nn.functional.gelu(self.wi(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError(f"T = {x.shape[-2]}, max_len = {self.max_len}")
        p = torch.arange(x.shape[-2], device=x.device, dtype=torch.float64)
        i = torch.arange(self.d_model, device=x.device)
        w = 10_000.0 ** (-(i - i % 2).double() / self.d_model)
        return x + torch.sin(p[:, None] * w + (i % 2) * (math.pi / 2)).to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.ln_attn, self.ln_mlp = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.mlp = FeedForward(d_model, d_ff, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attn(self.ln_attn(x)))
        return x + self.drop(self.mlp(self.ln_mlp(x)))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed = nn.Parameter(torch.randn(vocab_size, d_model) * 0.02)
        self.pos = PositionalEncoding(d_model, block_size)
        self.drop = nn.Dropout(dropout)
        for i in range(num_layers):
            self.add_module(f"block_{i}", TransformerBlock(d_model, num_heads, d_ff, dropout))
        self.depth = num_layers
        self.ln_f = nn.LayerNorm(d_model)
        self.unembed = Dense(d_model, vocab_size)

    def forward(self, ids):
        x = self.drop(self.pos(self.embed[ids]))
        for i in range(self.depth):
            x = getattr(self, f"block_{i}")(x)
        return self.unembed(self.ln_f(x))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError((temperature, top_k, top_p))
        was, _ = self.training, self.eval()
        n = ids.shape[1]
        buffer = torch.cat([ids, ids.new_zeros(len(ids), max_new_tokens)], 1)
        while n < buffer.shape[1]:
            logits = self(buffer[:, max(n - self.block_size, 0) : n])[:, -1]
            if temperature == 0:
                buffer[:, n] = logits.argmax(-1)
            else:
                logits = logits / temperature
                order = logits.argsort(dim=-1, descending=True)
                ranked = logits.gather(-1, order)
                if top_k is not None:
                    ranked[:, top_k:] = -torch.inf
                if top_p is not None:
                    p = ranked.softmax(-1)
                    ranked[(p.cumsum(-1) - p) >= top_p] = -torch.inf
                gumbel = -torch.log(-torch.log(torch.rand_like(ranked.double()).clamp(1e-300)))
                best = (ranked + gumbel).argmax(-1, keepdim=True)
                buffer[:, n] = order.gather(-1, best)[:, 0]
            n += 1
        self.train(was)
        return buffer
