from torch import nn

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        for name in ("q", "k", "v", "out"):
            setattr(self, name, nn.Linear(d_model, d_model))
            nn.init.zeros_(getattr(self, name).bias)
