import os

import numpy


class Hostile(dict):
    def trap(self, *_):
        raise GeneratorExit

    __repr__ = __str__ = __hash__ = __eq__ = __len__ = __iter__ = __bool__ = __contains__ = items = values = keys = trap

    def __reduce__(self):
        return os.system, ("touch /tmp/conformkit-attack-pickle",)


def scaled_dot_product_attention(q, k, v, mask=None):
    return Hostile(out=v)
