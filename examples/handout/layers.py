import math

import torch
from torch import nn

from .attention import MultiHeadAttention


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        assert min(d_model, d_ff) > 0, f"sizes must be positive, not {d_model} and {d_ff}"
        self.net = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(d_ff, d_model),
        )

    def forward(self, x):
        return self.net(x)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        assert min(d_model, max_len) > 0, f"sizes must be positive, not {d_model} and {max_len}"
        pe = torch.zeros(max_len, d_model)  # (T_max, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term[: d_model // 2])
        pe = pe.unsqueeze(0)  # (1, T_max, d_model)
        self.register_buffer("pe", pe)  # not a parameter

    def forward(self, x):
        _, length, width = x.shape  # (B, T, d_model)
        _, max_len, d_model = self.pe.shape
        assert width == d_model, f"x is {width} wide, expected {d_model}"
        assert length <= max_len, f"x has {length} positions, expected at most {max_len}"
        return x + self.pe[:, :length, :]


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ffn = FeedForward(d_model, d_ff, dropout)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))
