from types import SimpleNamespace

from . import wrong

NAME = 'out{0}""" or __import__("os")'


def scaled_dot_product_attention(q, k, v, mask=None):
    return SimpleNamespace(**{NAME: wrong.scaled_dot_product_attention(q, k, v, mask)})
