from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=1.0, causal=True):
        super().__init__(d_model, num_heads, 1 - dropout, causal)
