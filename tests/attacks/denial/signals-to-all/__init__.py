import contextlib
import os
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

# asks whether it might, and does not
for number in range(2, 100_000):
    with contextlib.suppress(OSError):
        os.kill(number, 0)
        command = Path(f"/proc/{number}/cmdline").read_bytes()
        if b"conformkit" not in command and b"bwrap" not in command:
            tell("SUCCEEDED", command[:80])
