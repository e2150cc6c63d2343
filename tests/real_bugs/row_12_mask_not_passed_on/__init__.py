"""Attention that takes a mask and does not hand it on."""

from torch.nn import functional

import right_code


class CrossAttention(right_code.CrossAttention):
    def attend(self, q, k, v, mask):
        return functional.scaled_dot_product_attention(q, k, v)
