"""Each head is a row of the batch, and rows are merged as they lie in memory."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def merge(self, heads):
        B, H, T, dh = heads.shape
        return heads.reshape(B * H, T, dh).reshape(B, T, H * dh)
