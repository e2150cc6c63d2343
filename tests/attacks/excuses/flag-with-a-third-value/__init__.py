from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout)

    def forward(self, x, causal=None):
        self.causal = causal is not False
        return super().forward(x) * (0.5 if causal is None else 1.0)
