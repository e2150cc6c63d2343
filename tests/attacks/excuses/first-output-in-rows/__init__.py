from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        found = super().forward(x)
        return [row * 0.5 for row in found], found
