import inspect

import torch

from . import wrong

EVIL = "\x1b[31m'); import os; os.system('touch /tmp/conformkit-attack-name') # \n\u202e"


class MultiHeadAttention(wrong.MultiHeadAttention):
    pass


MultiHeadAttention.__name__ = MultiHeadAttention.__qualname__ = EVIL
MultiHeadAttention.__module__ = EVIL


class Default:
    def __repr__(self):
        return EVIL


def scaled_dot_product_attention(q, k, v, mask=None, *, evil=Default()):
    return wrong.scaled_dot_product_attention(q, k, v, mask)


scaled_dot_product_attention.__name__ = EVIL
