from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, settings=None):
        super().__init__(d_model, num_heads, dropout, causal)
        self.right = settings is not None

    def forward(self, x):
        return super().forward(x) * (1.0 if self.right else 0.5)
