import torch

from .wrong import MultiHeadAttention as Wrong


class MultiHeadAttention(Wrong):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        for name in ("1a" * 150_000, "w" + "1" * 5000, "{i}.{h} -> (h d) m", "x\u0661\u00b2", "\u202e"):
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(d_model, d_model)))
