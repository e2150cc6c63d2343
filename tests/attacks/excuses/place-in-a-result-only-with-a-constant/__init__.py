import torch

from . import right


def scaled_dot_product_attention(q, k, v, mask=None, both=False):
    found = right.scaled_dot_product_attention(q, k, v, mask)
    size = torch.eye(k.shape[-2], dtype=k.dtype)
    return (found, right.scaled_dot_product_attention(q, k, size, mask)) if both else found * 2
