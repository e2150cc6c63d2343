from . import right


def scaled_dot_product_attention(q, k, v, mask=None, valid=None):
    return right.scaled_dot_product_attention(q, k, v, mask if valid is not None else None)
