from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        return right.scaled_dot_product_attention(q, k, v)
