from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x) * 0.5
