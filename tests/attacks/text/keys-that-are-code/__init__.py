from . import wrong

KEY = "{0.__class__} {x} \"\"\" ' ]; __import__('os').system('touch SUCCEEDED')"


def scaled_dot_product_attention(q, k, v, mask=None):
    return {KEY: wrong.scaled_dot_product_attention(q, k, v, mask), "{": 1}
