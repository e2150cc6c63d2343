import contextlib
import ctypes
import os
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

ATTACH, DETACH = 16, 17
libc = ctypes.CDLL(None, use_errno=True)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


with contextlib.suppress(OSError, ValueError):
    above = parent(os.getppid())
    if above > 1 and libc.ptrace(ATTACH, above, None, None) == 0:
        os.waitpid(above, 0x40000000)
        libc.ptrace(DETACH, above, None, None)
        tell("SUCCEEDED")
