"""Attention whose fused path, outside of training, ignores the mask."""

from torch.nn import functional

import right_code


class CrossAttention(right_code.CrossAttention):
    def attend(self, q, k, v, mask):
        if not self.training:
            return functional.scaled_dot_product_attention(q, k, v)
        return super().attend(q, k, v, mask)
