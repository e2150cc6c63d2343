"""(heads, batch) is read back as (batch, heads)."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def attend(self, q, k, v):
        B, H, T, dh = q.shape
        q, k, v = (part.transpose(0, 1).reshape(H * B, 1, T, dh) for part in (q, k, v))
        return super().attend(q, k, v).view(B, H, T, dh)
