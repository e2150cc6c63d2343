"""All layers in one array each, walked by index; functions over tensors, a thin class around them."""

import math

import torch
from torch import nn


def attention(q, k, v, mask=None):
    """The mask is added; None is no mask."""
    logits = torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        logits = logits + mask.expand(logits.shape)
    return torch.einsum("...ts,...sd->...td", torch.softmax(logits, dim=-1), v)


def layer_norm(x, scale):
    x = x - x.mean(-1, keepdim=True)
    return scale * x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)


def multi_head(x, wq, wk, wv, wo, causal):
    q, k, v = (torch.einsum("btm,mhd->bhtd", x, w) for w in (wq, wk, wv))
    later = torch.full((x.shape[1], x.shape[1]), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
    return torch.einsum("bhtd,hdm->btm", attention(q, k, v, later if causal else None), wo)


def mlp(x, w_in, w_out):
    return torch.nn.functional.silu(x @ w_in) @ w_out


def table(length, width):
    half = (width + 1) // 2
    angles = torch.arange(length).double()[:, None] / 10000 ** (2 * torch.arange(half).double() / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]


class Weights(nn.Module):
    """Parameters by name, made from shapes; matrices shrink with the square root of what they sum over."""

    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            if min(shape[1:]) < 1 or shape[0] < 0:
                raise ValueError(f"{name} cannot have the shape {shape}")
            fan_in = math.prod(shape[-3:-1]) if name == "wo" else shape[-3] if name in {"wq", "wk", "wv"} else shape[-2]
            start = torch.ones(shape) if name.startswith("scale") else torch.randn(shape) / fan_in**0.5
            self.register_parameter(name, nn.Parameter(start))


def split(d_model, num_heads):
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(f"d_model {d_model} does not split into {num_heads} heads")
    return num_heads, d_model // num_heads


class MultiHeadAttention(Weights):
    def __init__(self, d_model, num_heads, causal=True):
        h, d = split(d_model, num_heads)
        super().__init__(wq=(d_model, h, d), wk=(d_model, h, d), wv=(d_model, h, d), wo=(h, d, d_model))
        self.causal = causal

    def forward(self, x):
        return multi_head(x, self.wq, self.wk, self.wv, self.wo, self.causal)


class PositionalEncoding:
    def __init__(self, d_model, max_len):
        self.rows = table(max_len, d_model)

    def __call__(self, x):
        if x.shape[1] > len(self.rows) or x.shape[2] != self.rows.shape[1]:
            raise ValueError(f"{tuple(x.shape)} against {tuple(self.rows.shape)}")
        return x + self.rows[: x.shape[1]].to(x)


class TransformerBlock(Weights):
    """One layer: stacks of depth 1."""

    def __init__(self, d_model, num_heads, d_ff, causal=True, layers=1, **more):
        h, d = split(d_model, num_heads)
        super().__init__(
            wq=(layers, d_model, h, d), wk=(layers, d_model, h, d), wv=(layers, d_model, h, d),
            wo=(layers, h, d, d_model), w_in=(layers, d_model, d_ff), w_out=(layers, d_ff, d_model),
            scale_a=(layers, d_model), scale_b=(layers, d_model), **more,
        )  # fmt: skip
        self.causal, self.layers = causal, layers

    def forward(self, x):
        for i in range(self.layers):
            normed = layer_norm(x, self.scale_a[i])
            x = x + multi_head(normed, self.wq[i], self.wk[i], self.wv[i], self.wo[i], self.causal)
            x = x + mlp(layer_norm(x, self.scale_b[i]), self.w_in[i], self.w_out[i])
        return x


class TinyTransformerLM(TransformerBlock):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__(
            d_model,
            num_heads,
            d_ff,
            layers=num_layers,
            embedding=(vocab_size, d_model),
            unembedding=(d_model, vocab_size),
        )
        self.positions, self.block_size = PositionalEncoding(d_model, block_size), block_size

    def forward(self, ids):
        if ids.is_floating_point() or ids.numel() and not 0 <= ids.min() <= ids.max() < len(self.embedding):
            raise IndexError(f"ids must be integers below {len(self.embedding)}")
        return super().forward(self.positions(self.embedding[ids])) @ self.unembedding

    def generate(self, ids, n, temperature, generator=None):
        """An explicit generator, and no greedy mode but a temperature of zero."""
        if not ids.shape[1] or n < 0 or not temperature >= 0:
            raise ValueError(f"{n} ids after {ids.shape[1]} at temperature {temperature}")
        for _ in range(n):
            with torch.no_grad():
                logits = self(ids[:, -self.block_size :])[:, -1]
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
            ids = torch.cat([ids, new.to(ids.dtype)], dim=1)
        return ids
