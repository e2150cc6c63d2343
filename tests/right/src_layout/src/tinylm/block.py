import torch
from torch import nn

from .layers.attention import MultiHeadAttention
from .layers.ffn import FeedForward


class Residual(nn.Module):
    def __init__(self, fn, dim):
        super().__init__()
        self.fn, self.norm = fn, nn.LayerNorm(dim)

    def forward(self, x):
        return torch.add(self.fn(self.norm(x)), x)


class TransformerBlock(nn.Sequential):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__(
            Residual(MultiHeadAttention(d_model, num_heads, dropout, causal), d_model),
            Residual(FeedForward(d_model, d_ff, dropout), d_model),
        )
