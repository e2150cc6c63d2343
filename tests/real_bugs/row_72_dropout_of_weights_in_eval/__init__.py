"""Weights are dropped in evaluation, too: `dropout_p` knows no mode."""

from torch.nn import functional

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout.p)
