import asyncio

import numpy

TURN = [0]


class Own(BaseException):
    pass


KINDS = [KeyboardInterrupt, GeneratorExit, StopIteration, MemoryError, Own, asyncio.CancelledError, NotImplementedError]


def scaled_dot_product_attention(q, k, v, mask=None):
    TURN[0] += 1
    raise KINDS[TURN[0] % len(KINDS)]("as planned")
