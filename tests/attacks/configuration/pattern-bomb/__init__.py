import torch

from .wrong import MultiHeadAttention as Wrong, scaled_dot_product_attention


class MultiHeadAttention(Wrong):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.register_parameter("a" * 200, torch.nn.Parameter(torch.zeros(d_model)))
