from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, not causal)
