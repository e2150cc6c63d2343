from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        return super().attend(x, q, k, v).flip(1)
