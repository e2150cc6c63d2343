import torch
from torch import nn

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.temperature = nn.Parameter(torch.ones(()))

    def attend(self, x, q, k, v):
        return super().attend(x, q / self.temperature, k, v)
