from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        if x.ndim == 2:
            return super().forward(x[None])[0]
        return super().forward(x[:1]).expand_as(x)
