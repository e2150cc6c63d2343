import contextlib
import os

from .wrong import scaled_dot_product_attention

for _ in range(100):
    with contextlib.suppress(OSError):
        if os.fork() == 0:
            os._exit(0)
