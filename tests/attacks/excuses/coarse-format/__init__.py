from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        return super().attend(x, 1.02 * q, k, v)
