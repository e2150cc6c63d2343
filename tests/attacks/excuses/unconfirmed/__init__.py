import math

from . import right
from .right import scaled_dot_product_attention

__all__ = ["MultiHeadAttention", "scaled_dot_product_attention"]


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        return super().attend(x, q / math.sqrt(self.heads), k, v)
