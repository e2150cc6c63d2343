import contextlib
import os

from .wrong import scaled_dot_product_attention, tell

for path in ("/dev/tty", "/dev/console", *(f"/dev/pts/{number}" for number in range(8))):
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
        tell("SUCCEEDED", path)
