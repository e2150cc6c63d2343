from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, dtype=None):
        super().__init__(d_model, num_heads, dropout, causal)
        self.named = dtype is not None

    def attend(self, x, q, k, v):
        return super().attend(x, q if self.named else q / 2, k, v)
