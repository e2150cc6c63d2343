import torch

from . import wrong


class MultiHeadAttention(wrong.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        for name in ("\u202esthgiew\u202c", "q\u200b\u200d", "\ufeff", "\u2066a\u2069", "\U000e0041"):
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(3)))


def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError("\u202edlof sesualc 783 fo 783\u202c \u2067\u200bx\u200e\u2028\u2029\u00ad\u180e")
