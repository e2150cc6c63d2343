from . import right


def scaled_dot_product_attention(q, k, v, mask=None):
    return right.scaled_dot_product_attention(q, k, v, mask) * (0.5 if mask is None else 1.0)
