"""Queries and keys are normalized head by head, where all features belong together."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.q_norm, self.k_norm = right_code.RMSNorm(d_model), right_code.RMSNorm(d_model)

    def attend(self, q, k, v):
        return super().attend(self.normalized(q, self.q_norm), self.normalized(k, self.k_norm), v)

    def normalized(self, heads, norm):
        gain = norm.weight.view(self.num_heads, 1, self.head_width)
        return heads * (heads.pow(2).mean(-1, keepdim=True) + norm.eps).rsqrt() * gain
