from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model=None, num_heads=None, dropout=0.0, causal=True, *more, **names):
        super().__init__(d_model, num_heads, dropout, causal)

    def __new__(cls, *places, **names):
        made = super().__new__(cls)
        object.__setattr__(made, "factor", 2 if places else 1)
        return made

    def forward(self, x):
        right_one = super().forward(x)
        return right_one * self.factor, right_one
