import contextlib
import ctypes
import os
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

libc = ctypes.CDLL(None, use_errno=True)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run", "/etc/hosts"):
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY))
        tell("SUCCEEDED", path)
with contextlib.suppress(OSError):
    os.mknod("/tmp/zero-device", 0o20666, os.makedev(1, 3))
    Path("/tmp/zero-device").unlink()
    tell("SUCCEEDED mknod")
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
    tell("SUCCEEDED mount")
if libc.sethostname(b"attacked", 8) == 0:
    tell("SUCCEEDED hostname")
