import os

from . import wrong


def scaled_dot_product_attention(q, k, v, mask=None):
    os.write(1, bytes(range(256)) + b"\xf0\x9f\x92" + b"\xed\xa0\x80" + b"\xff\xfe" + "\U0001f4a9".encode("utf-16"))
    return wrong.scaled_dot_product_attention(q, k, v, mask)
