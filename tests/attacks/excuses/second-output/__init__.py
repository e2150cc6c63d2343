from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        found = super().forward(x)
        return found * 0.0, found
