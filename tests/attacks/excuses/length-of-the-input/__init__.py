from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, length=None):
        return super().forward(x) * (0.5 if length is None else 1.0)
