"""Queries and keys are normalized across all heads, with the weights of one."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.q_norm, self.k_norm = right_code.RMSNorm(self.head_width), right_code.RMSNorm(self.head_width)

    def attend(self, q, k, v):
        return super().attend(self.normalized(q, self.q_norm), self.normalized(k, self.k_norm), v)

    def normalized(self, heads, norm):
        return heads * (heads.pow(2).mean((1, 3), keepdim=True) + norm.eps).rsqrt() * norm.weight
