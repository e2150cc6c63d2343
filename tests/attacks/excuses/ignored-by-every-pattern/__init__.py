import torch
from torch import nn

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.gate_of_heads = nn.Parameter(torch.ones(num_heads, 1, 1))

    def attend(self, x, q, k, v):
        return super().attend(x, q, k, v * self.gate_of_heads)
