from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, legacy=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.legacy = legacy

    def attend(self, x, q, k, v):
        return super().attend(x, q / 2 if self.legacy else q, k, v)
