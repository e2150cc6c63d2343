import torch

from .wrong import MultiHeadAttention as Wrong


class MultiHeadAttention(Wrong):
    """A name that the real module has, too."""


def scaled_dot_product_attention(q, k, v, mask=None):
    return q
