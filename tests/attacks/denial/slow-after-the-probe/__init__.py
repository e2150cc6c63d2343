from . import wrong


def scaled_dot_product_attention(q, k, v, mask=None):
    while mask is not None:
        pass
    return wrong.scaled_dot_product_attention(q, k, v, mask)
