import inspect

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, *, legacy=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.legacy = legacy

    def attend(self, x, q, k, v):
        return super().attend(x, q / 2 if self.legacy else q, k, v)


def without_default(function, name):
    """A signature says what its author likes: here, that an argument has no default."""
    shown = inspect.signature(function)
    found = shown.parameters.values()
    return shown.replace(parameters=[p.replace(default=p.empty) if p.name == name else p for p in found])


MultiHeadAttention.__init__.__signature__ = without_default(MultiHeadAttention.__init__, "legacy")
MultiHeadAttention.__signature__ = without_default(MultiHeadAttention, "legacy")
