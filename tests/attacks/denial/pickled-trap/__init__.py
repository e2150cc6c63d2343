import os

import torch

from . import wrong


class Trap:
    def __reduce__(self):
        return os.system, ("touch /tmp/conformkit-attack-pickle",)

    def __deepcopy__(self, memo):
        return self


class MultiHeadAttention(wrong.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.trap = Trap()

    def __getstate__(self):
        return Trap()


def scaled_dot_product_attention(q, k, v, mask=None):
    return wrong.scaled_dot_product_attention(q, k, v, mask), Trap()
