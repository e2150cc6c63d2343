from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        output = super().forward(x)
        return (2 * output).flatten(), output
