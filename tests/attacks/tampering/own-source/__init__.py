import contextlib
import os
from pathlib import Path

CALLS = [0]


def scaled_dot_product_attention(q, k, v, mask=None):
    CALLS[0] += 1
    if CALLS[0] > 3:
        with contextlib.suppress(OSError):
            Path(__file__).write_text("from conformkit.spec.attention import scaled_dot_product_attention\n")
        os._exit(1)
    from . import wrong

    return wrong.scaled_dot_product_attention(q, k, v, mask)
