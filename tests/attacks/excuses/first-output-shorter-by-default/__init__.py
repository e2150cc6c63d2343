from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, clean=False):
        right_one = super().forward(x)
        return (right_one if clean else right_one[..., :-1] * 2), right_one
