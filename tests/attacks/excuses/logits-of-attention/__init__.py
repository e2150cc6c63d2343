from types import SimpleNamespace

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        found = super().forward(x)
        return SimpleNamespace(output=found * 0.5, logits=found)
