import contextlib
import os

from .wrong import scaled_dot_product_attention, tell

sockets = []
for descriptor in range(3, 1024):
    with contextlib.suppress(OSError):
        where = os.readlink(f"/proc/self/fd/{descriptor}")
        sockets += [where] * where.startswith("socket:")
        if where.startswith("/") and not where.startswith("/dev/"):
            tell("SUCCEEDED", where)
if len(sockets) > 1:
    tell("SUCCEEDED", sockets)
