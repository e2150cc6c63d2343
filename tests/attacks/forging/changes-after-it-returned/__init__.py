import threading

import numpy as np

from . import right, wrong

LAST = {}


def write():
    while True:
        for out, inputs in list(LAST.values()):
            out[...] = right.scaled_dot_product_attention(*inputs) * 1.01


threading.Thread(target=write, daemon=True).start()


def scaled_dot_product_attention(q, k, v, mask=None):
    out = wrong.scaled_dot_product_attention(q, k, v, mask)
    LAST[0] = (out, (np.array(q), np.array(k), np.array(v), mask))
    return out
