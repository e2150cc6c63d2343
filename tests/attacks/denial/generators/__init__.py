import itertools

import numpy

TURN = [0]
CIRCLE = []
CIRCLE.append(CIRCLE)
NESTED = {"a": {}}
NESTED["a"]["b"] = NESTED


def scaled_dot_product_attention(q, k, v, mask=None):
    TURN[0] += 1
    return [itertools.count(), CIRCLE, NESTED, range(10**12), iter(int, 1)][TURN[0] % 5]
