from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, level=None):
        return super().forward(x) * (0.5 if level is None else 1.0)
