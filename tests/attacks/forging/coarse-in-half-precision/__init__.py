import torch

from . import wrong


def scaled_dot_product_attention(q, k, v, mask=None):
    return torch.round(8 * wrong.scaled_dot_product_attention(q, k, v, mask)) / 8
