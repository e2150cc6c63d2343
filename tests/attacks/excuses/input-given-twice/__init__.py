from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, memory=None):
        return super().forward(x) * (0.5 if memory is None else 1.0)
