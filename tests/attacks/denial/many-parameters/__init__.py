import torch

from .wrong import MultiHeadAttention as Wrong


class MultiHeadAttention(Wrong):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        shared = torch.zeros(d_model, d_model)
        for number in range(20_000):
            self._parameters[f"w{number}"] = torch.nn.Parameter(shared)
