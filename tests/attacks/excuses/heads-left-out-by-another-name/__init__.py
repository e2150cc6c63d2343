from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, n_heads=1, dropout=0.0, causal=True):
        super().__init__(d_model, 1, dropout, causal)
