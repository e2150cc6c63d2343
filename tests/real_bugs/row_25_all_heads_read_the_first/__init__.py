"""A kernel's stride is off: all heads read the first one; the scale is a literal."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def scores(self, q, k):
        return q[:, :1].expand(q.shape) @ k[:, :1].expand(k.shape).transpose(-2, -1) * 0.5
