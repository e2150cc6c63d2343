"""Layers that learn the width of their input at the first call, as in Haiku or Keras."""
import math

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter


class LazyLayerNorm(nn.modules.lazy.LazyModuleMixin, nn.Module):
    cls_to_become = None

    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.scale = UninitializedParameter()
        self.offset = UninitializedParameter()

    def initialize_parameters(self, x):
        if self.has_uninitialized_params():
            with torch.no_grad():
                self.scale.materialize((x.shape[-1],), device=x.device, dtype=x.dtype)
                self.offset.materialize((x.shape[-1],), device=x.device, dtype=x.dtype)
                self.scale.fill_(1.0)
                self.offset.zero_()

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.scale, self.offset, self.eps)


class MultiHeadAttention(nn.Module):
    """`num_heads` heads of `key_size` each; the model width is found out."""

    def __init__(self, num_heads, key_size, model_size=None, causal=True, dropout=0.0):
        super().__init__()
        assert num_heads > 0 and key_size > 0
        self.num_heads, self.key_size, self.causal = num_heads, key_size, causal
        inner = num_heads * key_size
        self.query = nn.LazyLinear(inner)
        self.key = nn.LazyLinear(inner)
        self.value = nn.LazyLinear(inner)
        self.linear = nn.LazyLinear(inner if model_size is None else model_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        lead = x.shape[:-1]
        q, k, v = (f(x).view(*lead, self.num_heads, self.key_size) for f in (self.query, self.key, self.value))
        scores = torch.einsum("...thd,...Thd->...htT", q, k) / math.sqrt(self.key_size)
        if self.causal:
            t = torch.arange(x.shape[-2], device=x.device)
            scores = torch.where(t[:, None] >= t, scores, torch.tensor(-torch.inf, dtype=x.dtype, device=x.device))
        weights = self.dropout(scores.softmax(-1))
        y = torch.einsum("...htT,...Thd->...thd", weights, v)
        return self.linear(y.reshape(*lead, self.num_heads * self.key_size))


class DenseBlock(nn.Module):
    """`widening` times as wide inside; built when it first sees data."""

    def __init__(self, widening=4, dropout=0.0):
        super().__init__()
        assert widening >= 1
        self.widening = widening
        self.body = None
        self.dropout = nn.Dropout(dropout)

    def build(self, size, like):
        self.body = nn.Sequential(nn.Linear(size, self.widening * size), nn.GELU(), nn.Linear(self.widening * size, size))
        self.body.to(device=like.device, dtype=like.dtype)

    def forward(self, x):
        if self.body is None:
            self.build(x.shape[-1], x)
        return self.dropout(self.body(x))


class LearnedPositions(nn.modules.lazy.LazyModuleMixin, nn.Module):
    cls_to_become = None

    def __init__(self, max_len):
        super().__init__()
        assert max_len > 0
        self.max_len = max_len
        self.rows = UninitializedParameter()

    def initialize_parameters(self, x):
        if self.has_uninitialized_params():
            with torch.no_grad():
                self.rows.materialize((self.max_len, x.shape[-1]), device=x.device, dtype=x.dtype)
                nn.init.trunc_normal_(self.rows, std=0.02)

    def forward(self, x):
        assert x.shape[-2] <= self.max_len, "sequence too long"
        return x + self.rows[: x.shape[-2]]


class TransformerLayer(nn.Module):
    """Pre-norm."""

    def __init__(self, num_heads, key_size, model_size, widening=4, causal=True, dropout=0.0):
        super().__init__()
        self.norm_a, self.norm_b = LazyLayerNorm(), LazyLayerNorm()
        self.attention = MultiHeadAttention(num_heads, key_size, model_size, causal, dropout)
        self.dense = DenseBlock(widening, dropout)

    def forward(self, x):
        h = x + self.attention(self.norm_a(x))
        return h + self.dense(self.norm_b(h))
