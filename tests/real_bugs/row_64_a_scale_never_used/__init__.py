"""Attention with a learned scale that nothing reads."""

import torch
from torch import nn

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.scale = nn.Parameter(torch.ones(num_heads))
