import numpy


def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError("0123456789" * 5_000_000)
