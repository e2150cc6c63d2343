from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        found = super().forward(x)
        return {"output": found.flip(1), "checked": found}
