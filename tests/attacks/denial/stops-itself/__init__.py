import os
import signal

import numpy


def scaled_dot_product_attention(q, k, v, mask=None):
    os.kill(os.getpid(), signal.SIGSTOP)
