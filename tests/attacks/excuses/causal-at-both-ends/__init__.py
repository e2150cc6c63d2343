from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, later=None):
        return super().forward(x) * (0.5 if later is None else 1.0)
