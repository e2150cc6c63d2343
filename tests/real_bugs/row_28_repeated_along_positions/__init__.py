"""Keys and values are repeated along the positions in place of the heads."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def expanded(self, heads):
        B, H, T, dh = heads.shape
        return heads.repeat_interleave(self.share, dim=2).reshape(B, self.share * H, T, dh)
