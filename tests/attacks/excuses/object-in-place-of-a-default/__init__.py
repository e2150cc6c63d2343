from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, gain=2.0):
        return super().forward(x) * gain


def one():
    return 1.0
