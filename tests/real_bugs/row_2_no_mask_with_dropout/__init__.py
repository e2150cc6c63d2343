"""Attention that is causal only where no weight is to be dropped."""

import torch
from torch.nn import functional

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def attend(self, q, k, v):
        if self.dropout.p == 0.0:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return torch.softmax(self.scores(q, k), dim=-1) @ v
